"""The page "Circuit"."""
