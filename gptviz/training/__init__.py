"""What made the bundled model: corpus, tokenizer, windows, loop, measurements, model card.

Run it with `python -m gptviz.training --help`.
"""
