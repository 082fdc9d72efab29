"""What a server does beside showing pages: its routes, its health, its log, and what a machine can carry."""
