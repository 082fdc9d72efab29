"""The sentences of the panels on paths, flow and agreement, all of them, for small inputs."""

from gptviz.ui.views.why.ways import words
from gptviz.ui.views.why.ways.words import CONTRIBUTIONS, ROLLOUT, Place, Writer
from tests.golden_files import check

MILL, OLD, FIRST = Place("·mill", 10), Place("·old", 21), Place("`", 0)
HEAD, EARLIER = Writer("head", 5, 3, OLD), Writer("head", 4, 3, MILL)
FEED_FORWARD, TOKEN = Writer("feed-forward", 0, None, MILL), Writer("embedding", None, None, FIRST)


def test_every_sentence():
    ways = ["attention", "rollout", "contribution", "attribution", "muting"]
    check(
        "ways_words",
        {
            "strongest": words.strongest(FEED_FORWARD, [HEAD], 0.4993, "·mill", None),
            "strongest: two heads": words.strongest(TOKEN, [EARLIER, HEAD], -0.25, "·mill", "·town"),
            "looked: key": words.looked(EARLIER, HEAD, "K", 1.05),
            "looked: query": words.looked(TOKEN, HEAD, "Q", -0.3),
            "no ways": words.no_ways(0.005),
            "counted": words.counted(20, 162, 0.02, 12.0556, 22.01, None),
            "counted: difference": words.counted(7, 7, 0.025, 5.3284, 12.89, "·town"),
            "paths": words.PATHS,
            "assumes: paths": words.ASSUMES_PATHS,
            "paths table": words.PATHS_TABLE,
            "flow": words.flow(CONTRIBUTIONS, OLD, 0.0243, FIRST, 0.1394),
            "flow: rollout": words.flow(ROLLOUT, OLD, 0.0312, MILL, 0.00002),
            "flow: one token": words.flow(ROLLOUT, FIRST, 1.0, None, 0.0),
            **{f"assumes: {way}": sentence for way, sentence in words.ASSUMES.items()},
            "followed": words.followed(0.8314),
            "graph": words.graph_counted(211, 0.04, 0, False),
            "graph: places left out": words.graph_counted(300, 0.01, 17, True),
            "head by head": words.HEAD_BY_HEAD,
            "graph table": words.GRAPH_TABLE,
            "depth table": words.DEPTH_TABLE,
            "agreement: one first": words.agreement([(way, MILL) for way in ways], None, None),
            "agreement": words.agreement(
                [("attention", MILL), ("rollout", FIRST), ("contribution", FIRST), ("attribution", OLD)],
                ("rollout", "contribution", 0.79),
                ("contribution", "attribution", -0.2871),
            ),
            "compared": words.compared(21, 21),
            "compared: a long text": words.compared(32, 1023),
            "ask": words.ask(32, 1024),
            "ask: help": words.ASK_HELP,
            "what they are": words.WHAT_THEY_ARE,
            "nothing before": words.NOTHING_BEFORE,
            "correlations": words.CORRELATIONS,
            "agreement table": words.AGREEMENT_TABLE,
        },
    )
