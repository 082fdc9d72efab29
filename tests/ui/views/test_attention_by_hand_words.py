"""The Attention by hand page's sentences, all of them, for small inputs."""

from gptviz.ui.views.attention_by_hand import words
from tests.golden_files import check

HELLO = ("Hello", "shiny", "sun")


def test_every_sentence() -> None:
    weights, context = (0.2291, 0.4063, 0.3646), (0.399, 0.3854, 0.861)
    check(
        "attention_by_hand_words",
        {f"above: {way}": words.sentence(way, HELLO, 1, weights, context, 3) for way in words.WAYS}
        | {
            "above: one word": words.sentence("simple", ("`",), 0, (1.0,), context, 1),
            "above: nothing before": words.sentence("causal", HELLO, 0, (1.0, 0, 0), (0.5, -0.25), 1),
            "printed": words.printed("journey", "simple", None, "journey", (0.44191, 0.65152, 0.56827)),
            "printed, rounded on the way": words.printed("hello", "simple", None, "shiny", context),
            "printed nowhere": words.printed("hello", "heads", "linear-123", "shiny", context),
            "a number": words.given_number("sun", 2, 0.93),
            "a weight": words.given_weight("W_query", 1, 0, -0.16829),
            "made": words.made("query", "sun", 0, (0.29, 0.54, 0.93), (0.1, -0.2, 0.3), 0.2),
            "score": words.score("shiny", "sun", (0.53, 0.34), (0.29, 0.54), 0.3373),
            "scaled": words.scaled("shiny", "sun", -1.2487, 2**0.5, 2, -0.88296),
            "masked": words.masked("Hello", "sun"),
            "weight": words.weight("shiny", "sun", -0.5, 0.3646),
            "context": words.context("shiny", 0, weights, (0.34, 0.53, 0.29), 0.399),
            "beside": words.beside("shiny", 3, 1, 0.3257),
            "average": words.takes("sun", "Hello", 1 / 3),
            "average, a vector": words.at("sun", 1, 0.54),
            "score of an average": words.equal("sun", "Hello", False),
            "rest": words.REST,
            "no number": words.not_a_number("red `", "0.34", 100.0),
            "no number: nothing": words.not_a_number(" ", "0.34", 100.0),
        }
        | {f"look for: {way}": words.look_for(way) for way in words.WAYS}
        | {
            "row": words.row_title("shiny"),
            "averages": words.AVERAGING,
            "agree": words.agree(0),
            "agree but for rounding": words.agree(1.1e-16),
            "notebook": words.notebook(["0.3389 where this is 0.3388"]),
            "notebook: the same": words.notebook([]),
            "softmax": words.softmax(["4.2757 where this is 4.2755"], []),
            "softmax: as printed": words.softmax([], []),
            "so far": words.so_far("scores", "shiny", [(0.7842, 1.3569, 1.2487)]),
            "so far, two heads": words.so_far("queries", "shiny", [(0.5, -0.25), (0.1, 0.2)]),
            "large numbers": words.vector((12345.678, -0.00001)),
            "table: pairs": words.ROWS,
            "table: vectors": words.VECTORS,
        },
    )
