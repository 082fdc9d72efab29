"""Forward passes of a model: sites, runs, edits, captures, and text generation."""
