"""Files and folders: written whole or not at all, owned by a server, kept as a cache; where the app lies."""
