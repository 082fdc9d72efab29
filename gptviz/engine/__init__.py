"""What a pass of a model is, and what is asked of it: sites, runs, edits, captures, and writing on."""
