"""Training runs in the app: the queue of all visitors, the processes, and what belongs to this browser."""
