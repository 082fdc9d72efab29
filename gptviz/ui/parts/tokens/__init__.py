"""What the page Tokens shows of a tokenizer besides tokens."""
