"""Files and folders: written whole or not at all, owned by a server, kept as a cache, and where the app lies."""
