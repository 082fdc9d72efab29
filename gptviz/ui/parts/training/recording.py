"""The recorded training that stands where nobody has trained anything yet: a head being born."""

from gptviz.training.live.recorded import shipped
from gptviz.ui import sheet
from gptviz.ui.components.birth import draw_birth
from gptviz.ui.shell.scene import Frame
from gptviz.ui.words import prose


def film(frame: Frame) -> None:
    """Draw the recording: after which step the head is born, and the head, its score and the loss."""
    recording = shipped()
    steps = [measured.step for measured in recording.measures]
    after = steps[recording.birth.before]
    prose(f"Recorded here: after step {after:,} this head begins to look back and copy.", "head")
    score = f"{recording.scores[0]:.2f} to {recording.scores[-1]:.2f}"
    title = f"A recorded training: block {recording.block}, head {recording.head} becomes an induction head"
    draw_birth(
        "training_birth",
        recording.weights,
        recording.text,
        recording.period,
        steps,
        recording.scores.tolist(),
        recording.losses.tolist(),
        [("a blind guess", recording.blind), ("what nobody can predict", recording.floor)],
        after,
        f"{title}, its induction score from {score}",
        saved=frame.saved("training_birth", title),
    )


def numbers() -> None:
    """Tabs of *Details*: what was measured in the recording, and how it was made."""
    recording = shipped()
    made = (
        f"Recorded on {recording.made_on} by `{recording.command}`, with torch {recording.torch} and "
        f"seed {recording.config.seed}. Losses are in nats per token; heads are block.head."
    )
    sheet.numbers_of("training_recorded", recording.seen.table, made, "the recording")
    told = "Each head's two scores at every recorded point."
    sheet.numbers_of("training_recorded_heads", recording.seen.heads, told, "every head")
