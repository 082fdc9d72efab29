"""The page "Knock-out"."""
