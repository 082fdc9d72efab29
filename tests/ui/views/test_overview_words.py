"""The Overview's sentences, all of them, for small inputs."""

from gptviz.ui.views.overview import words
from tests.golden_files import check


def test_every_sentence() -> None:
    before, after = (0.1149, 27.04), (0.3512, 1.499)
    check(
        "overview_words",
        {
            "sentence": words.sentence(22, "·old", 21, "·mill", 0.90634),
            "sentence: something is changed": words.sentence(22, "·old", 21, "·man", 0.147, 0.0123),
            "sentence: one token": words.sentence(1, "`", 0, "s", 0.001234),
            "the way": words.the_way(256, 6, 8),
            "the way: one of each": words.the_way(64, 1, 1),
            "door: tokens": "|".join(words.tokens(22, "·old", 651)),
            "door: embeddings": "|".join(words.embeddings(256)),
            "door: embeddings, changed": "|".join(words.embeddings(256, True)),
            "door: attention": "|".join(words.attention(6, 8)),
            "door: attention, one head": "|".join(words.attention(1, 1)),
            "door: attention, changed": "|".join(
                words.attention(6, 8, "Hatched: changed (1 head). No head's pattern moved.")
            ),
            "door: layernorm": "|".join(words.layernorm(13, before, after)),
            "door: layernorm, changed": "|".join(words.layernorm(13, before, after, 28.3)),
            "door: layernorm, unmoved": "|".join(words.layernorm(13, before, after, 27.04, drawn=False)),
            "door: feed-forward": "|".join(words.feed_forward(5, 1024, 249)),
            "door: feed-forward, changed": "|".join(words.feed_forward(5, 1024, 235, 249)),
            "door: feed-forward, unmoved": "|".join(words.feed_forward(5, 1024, 249, 249, drawn=False)),
            "door: feed-forward, strips": "|".join(words.feed_forward_strips(1024)),
            "around the block's doors": words.block(6),
            "around the block's doors: one block": words.block(1),
            "door: next token": "|".join(words.next_token(8192, "·old")),
            "alt: strip": words.strip_alt("position", 22, 48, 256, 0.2345),
            "alt: attention": words.attention_alt(6, 8),
            "alt: layernorm": words.layernorm_alt(13, before, after),
            "alt: units": words.units_alt("after GELU", 5, 1024, 17.2),
            "alt: unchanged": words.unchanged("after GELU"),
            "bar": words.bar("·mill", 0.90634),
            "bar: something is changed": words.bar("·mill", 0.18426, 0.90634),
            "table: tokens": words.TABLE,
            "table: norms": words.NORMS,
            "table: heads": words.HEADS,
        },
    )
