"""What the page Feed-forward says of units with and without gates."""
