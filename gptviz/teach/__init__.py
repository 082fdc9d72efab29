"""Teaching: guides and their questions, a class and its votes, claims, and a hand-out that computes."""
