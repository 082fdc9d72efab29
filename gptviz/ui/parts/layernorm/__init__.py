"""What the page LayerNorm says of either kind of norm."""
