"""What the page Positions shows of a model that adds nothing for a position."""
