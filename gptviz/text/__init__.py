"""Text for people: a stranger's as it is, a value in a notebook, and the name that was meant."""
