"""Which model: where weights come from, in every format, and how one of them is opened."""
