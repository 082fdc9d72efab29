"""The training page's sentences, all of them, for small inputs."""

from dataclasses import replace

from gptviz.analysis.birth import Birth, Head
from gptviz.training.live import LiveConfig, Snapshot, Status
from gptviz.ui.views.training import words
from gptviz.ui.views.training.presets import PRESETS, named
from tests.golden_files import check

LOW, HIGH = ((0.05, 0.04), (0.09, 0.06)), ((0.05, 0.04), (0.56, 0.3))
AT = Snapshot(180, 3.89, 3.7828, LOW, LOW, "abc")
LATER = Snapshot(240, 2.97, 2.4429, HIGH, LOW, "abc")
BORN = Birth(0, 1, Head(1, 0, 0.56), Head(0, 1, 0.2077), 0.145)
END = replace(LATER, step=300)
TESTED, ON = ((0, 2), 180), ("run 1", (AT, LATER), BORN)
STATUS = Status("training", 240, 600, 9.81, 50230.4)
NEW = Status("new", 0, 600, 0.0, 0.0)
ONE = LiveConfig(n_layers=1, n_heads=1)


def test_every_sentence():
    usual = LiveConfig()
    check(
        "training_words",
        {
            "intro": f"{words.INTRO}\n{words.PROBE}",
            "fields": "\n".join(
                f"{field}: {words.HELP.get(name, '')}" for name, field in words.FIELDS.items()
            ),
            "presets": "\n".join(
                f"{preset.label} ({'; '.join(map(named, preset.runs))}): {preset.watch}"
                for preset in PRESETS.values()
            ),
            "named": "\n".join(
                map(
                    named,
                    (
                        ONE,
                        LiveConfig(task="own", emb_dim=32, context_length=32, seed=5, n_layers=3),
                        LiveConfig(feed_forward=False, muted=((1, 2), (0, 0)), n_heads=8),
                    ),
                )
            ),
            "parameters": words.parameters(99136, 64, usual) + "\n" + words.parameters(9000, 59, ONE),
            "progress": "\n".join(
                words.progress(STATUS, state, None, 1)
                for state in ("training", "paused", "stopped", "done", "failed", "killed", "starting")
            ),
            "progress: waiting": "\n".join(
                (
                    words.progress(NEW, "waiting", 2, 1),
                    words.progress(STATUS, "waiting", 1, 3),
                    words.progress(NEW, "paused", None, 1),
                )
            ),
            "born": words.repeats((AT, LATER), BORN, 4.1589, 1.1573, usual, True),
            "born: nobody told it": words.repeats(
                (AT, LATER), replace(BORN, previous=None, rise=0.0), 4.1589, 1.1573, usual, True
            ),
            "not yet": words.repeats((AT,), None, 4.1589, 1.1573, usual, False),
            "never": words.repeats((AT,), None, 4.1589, 1.1573, usual, True),
            "never: one block": words.repeats((AT,), None, 4.1589, 1.1573, ONE, True),
            "characters": words.characters((AT, LATER), 4.08, 2.5),
            "characters: not yet, and by heart": words.characters((LATER, AT), 4.08, 2.34),
            "beside": words.beside("run 2: 1 block", LATER),
            "heads": "\n".join(
                (
                    words.head_label(0.05, 0.1, False),
                    words.head_label(0.56, 0.1, False),
                    words.head_label(0.2, 0.42, False),
                    words.head_label(0.2, 0.42, True),
                    words.head_says(0.2, 0.42, False),
                    words.head_says(0.2, 0.42, True),
                )
            ),
            "large": words.large(1, 2, 600, 16, 0.83, 0.02),
            "large: text": words.large(1, 2, 600, None, 0.83, 0.02),
            "right": words.right(38, 40),
            "fork": words.fork(240),
            "forked": "\n".join(
                (words.forked(240, ()), words.forked(240, ((1, 2),)), words.forked(240, ((0, 1), (1, 2))))
            ),
            "tested": "\n".join(
                (
                    words.test_it((0, 2), 180),
                    words.tested(*TESTED, ("run 2", (AT,), None), ON, False),
                    words.tested(*TESTED, ("run 2", (AT,), None), ON, True),
                    words.tested(*TESTED, ("run 2", (AT, LATER), None), ON, True),
                    words.tested(*TESTED, ("run 2", (AT, LATER), BORN), ON, True),
                    words.tested(*TESTED, ("run 2", (AT, LATER, END), replace(BORN, there=2)), ON, True),
                )
            ),
            "head choice": f"{words.head_choice(None)}\n{words.head_choice((1, 2))}\n{words.slider(1240)}",
            "take": f"{words.OPENED}\n{words.RELOAD}",
            "numbers": f"{words.CURVES}\n{words.HEADS}\n{words.LEVELS}\n{words.TENSORS}",
        },
    )
