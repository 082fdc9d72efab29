"""The sentences of "Knock-out", all of them, for small inputs."""

from gptviz.ui.views.knock_out import words
from gptviz.ui.views.knock_out.words import Asked, Muted
from tests.golden_files import check


def test_every_sentence() -> None:
    asked = Asked("·old", 21, "·mill", None, 14.25, 0.906)
    pair = Asked("·old", 21, "·mill", "·town", 5.33, 0.906)
    head = Muted("block 4 · head 3", 10.6, 0.184)
    changed = Asked("·old", 21, "·mill", None, 10.6, 0.184, (14.25, 0.906))
    both = Muted("block 4 · head 3", 10.6, 0.184, (10.6, 0.183))
    whole = Muted("block 0 · attention", -3.5, 7.04e-5)
    check(
        "knock_out_words",
        {
            "sentence": words.sentence(asked, "probability", whole, head, 34, 48),
            "sentence: a head is first": words.sentence(asked, "probability", head, head, 34, 48),
            "sentence: logit": words.sentence(asked, "logit", whole, head, 34, 48),
            "sentence: difference": words.sentence(pair, "logit", whole, head, 34, 48),
            "grid": words.GRID,
            "listed": words.listed(12, "probability"),
            **{
                f"look for: {name}": words.look_for(name, "probability", asked, 3, 60)
                for name in words.BASELINES
            },
            "look for: logit": words.look_for("zero", "logit", asked, 11, 60),
            "opened": words.opened(asked, head, 6, 60, "zero"),
            "opened: sample": words.opened(pair, head, 6, 60, "sample"),
            "opened: rises": words.opened(asked, Muted("block 0 · head 6", 15.0, 0.9999), 40, 60, "mean"),
            "unmoved": words.unmoved(asked, head),
            "unmoved, changed": words.unmoved(changed, both),
            "bar": words.bar("block 4 · head 3", pair, head),
            "bar, changed": words.bar("block 4 · head 3", changed, both),
            "opened, changed": words.opened(changed, both, 6, 60, "zero"),
            "sentence: something is changed": words.sentence(changed, "probability", whole, head, 34, 48),
            "beside": words.BESIDE,
            "ask": words.ask(168, 64),
            "stopped": words.STOPPED,
            "changed": words.changed(changed, "probability", False),
            "changed: beside": words.changed(changed, "logit", True),
            "table": words.NUMBERS,
            "to attention": words.TO_ATTENTION.format(block=4, head=3),
            "to a block": words.TO_BLOCK.format(block=4),
            "to a feed-forward": words.TO_FEED_FORWARD.format(block=4),
            "to why": words.TO_WHY,
            "to circuit": words.TO_CIRCUIT,
        },
    )
