"""What the numbers of the pages that take the model apart cost, beside one forward pass of the same text.

    python benchmarks/prediction.py [--tokens 16 128 1024] [--rounds 5] [--model gpt2-untrained] [--only why]

Each row is a function of a pass that is already traced, with only what it reads of that pass; a figure is
the median over the rounds of its time on the clock, divided by the median of a plain pass (no site kept, no
output head) of the same rounds, which is printed in milliseconds. Every round goes through all rows in
turn, so that a machine that slows down slows all of them. What runs the model again for every part takes
minutes for a long text: such a row has a number of tokens from which on it is left out, printed as a dash.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import gptviz
from gptviz.analysis import attribution, feed_forward, knock_out, logit_lens, source_tokens
from gptviz.analysis.flow import SITES as FLOW, contribution_graph, rollout, token_flow
from gptviz.analysis.lens import KEEP as LENS, cells
from gptviz.analysis.logit_attribution import sites
from gptviz.analysis.paths import SITES as PATHS, paths
from gptviz.analysis.stream import SITES as STREAM, stream

STORY = (Path(__file__).parent.parent / "README.md").read_text("utf-8")
TOKEN = 100
AGAINST = 200


@dataclass(frozen=True)
class Row:
    """A page's number: `work(lm, trace)`, the trace holding `keep`, for texts of at most `most` tokens."""

    page: str
    name: str
    keep: Callable[[gptviz.GPTConfig], list[str | tuple[str, int]]]
    work: Callable[[gptviz.LanguageModel, gptviz.Trace], object]
    most: int = 1024


def with_sources(config: gptviz.GPTConfig) -> list[str | tuple[str, int]]:
    return [*sites(config), "q", "k", "v"]


ROWS = [
    Row("residual_stream", "norms, writes, cosines", lambda _: list(STREAM), stream),
    Row(
        "feed_forward",
        "the units of a block",
        lambda _: [(site, 0) for site in ("resid_mid", "mlp_pre", "mlp_act", "mlp_out")],
        lambda lm, t: feed_forward.units(lm, t, 0, len(t) - 1),
    ),
    Row(
        "logit_lens",
        "one position, every depth",
        lambda _: list(LENS),
        lambda lm, t: logit_lens(t, lm.model),
    ),
    Row(  # the whole text's is tokens / 16 times as much
        "logit_lens",
        "16 columns of the grid",
        lambda _: list(LENS),
        lambda lm, t: cells(lm, t, 0, min(16, len(t))),
    ),
    Row("why", "attribution", sites, lambda lm, t: attribution(t, lm.model, TOKEN, AGAINST)),
    Row(
        "why",
        "source tokens",
        with_sources,
        lambda lm, t: source_tokens(t, lm.model, TOKEN, AGAINST),
    ),
    Row("why", "paths", lambda _: list(PATHS), lambda lm, t: paths(lm, t, TOKEN, AGAINST)),
    Row("why", "flow: one token's graph", lambda _: list(FLOW), contribution_graph),
    Row("why", "flow: shares of all tokens", lambda _: list(FLOW), token_flow),
    Row("why", "rollout", lambda _: ["q", "k"], rollout),
    Row(
        "why",
        "muting every part",
        lambda _: [],
        lambda lm, t: knock_out(lm, [token.id for token in t.tokens], (TOKEN, AGAINST)),
        most=128,
    ),
]


def clocked(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def measure(
    lm: gptviz.LanguageModel, ids: list[int], rows: list[Row], rounds: int
) -> tuple[float, list]:
    """Milliseconds of a plain pass, and for each row its time divided by that, None where it is left out."""
    possible = [row for row in rows if len(ids) <= row.most]
    keep = dict.fromkeys(key for row in possible for key in row.keep(lm.config))
    trace = lm.trace(ids, keep=keep)
    times: dict[str, list[float]] = {}
    for _ in range(rounds):
        times.setdefault("", []).append(clocked(lambda: lm.trace(ids, keep=[])))
        for row in possible:
            times.setdefault(row.name, []).append(clocked(lambda row=row: row.work(lm, trace)))
    middle = {name: statistics.median(found) for name, found in times.items()}
    return 1000 * middle[""], [
        middle[row.name] / middle[""] if row.name in middle else None for row in rows
    ]


def written(ratio: float | None) -> str:
    """A ratio with two digits, and a dash where there is none."""
    if ratio is None:
        return "–"
    return f"{ratio:.2g}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--tokens", type=int, nargs="+", default=[16, 128, 1024])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--model", default="gpt2-untrained")
    parser.add_argument("--only", default="", help="rows of this page only")
    args = parser.parse_args()
    lm = gptviz.load(args.model)
    rows = [row for row in ROWS if args.only in row.page]
    story = lm.encode(STORY * 4)
    found = []
    for count in args.tokens:
        if count > min(lm.config.context_length, len(story)):
            parser.error(f"{lm.name} reads at most {lm.config.context_length} tokens, not {count}")
        found.append(measure(lm, story[:count], rows, args.rounds))
    print(f"{lm.name}, {args.rounds} rounds; a forward pass is 1\n")
    print("| page | numbers |" + "".join(f" {count:,} tokens |" for count in args.tokens))
    print("|---|---|" + "---|" * len(found))
    print("| | a forward pass |" + "".join(f" {pass_:.0f} ms |" for pass_, _ in found))
    for i, row in enumerate(rows):
        cells = [written(ratios[i]) for _, ratios in found]
        print(f"| {row.page} | {row.name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
