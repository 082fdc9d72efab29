"""A small world in plain modern English: the second kind of text that the bundled model is trained on.

The old books teach it language; these passages teach it what its readers ask: facts, names, pronouns,
numbers, questions and their answers, short stories. `tables` has the facts, `texts/*.txt` the wordings,
`phrases` fills one with the other, `drills` writes many sums in a row, and `passages` draws them.
"""
