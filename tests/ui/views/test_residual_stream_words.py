"""The Residual stream page's sentences and tables, all of them, for small inputs."""

import re

from gptviz.analysis.stream import Addition, Block, does
from gptviz.ui.views.residual_stream import tables, words
from tests.golden_files import check

WORK = Block(
    lines=[("shortcut = x", 231.4, 231.4), ("x = self.norm1(x)", 6.968, 231.4)],
    additions=[Addition(174, -23.62, -17.15, -105.0, -145.77)],
    difference=9.5e-6,
    without=((220.1, 244.7, 0.51), (327.9, 439.5, 0.84)),
    share=0.1893,
)


def test_every_sentence() -> None:
    what, write = words.what_to_see, words.write
    check(
        "residual_stream_words",
        {
            "what to see": what("·old", 1.8008, 439.53, 11, 327.89, 244.73),
            "what to see: a small write of attention": what("`", 50.0, 51.0, 0, 4.0, 50.0),
            "what to see: a stream of zeros": what("·old", 0.0, 3.0, 0, 3.0, 0.0),
            **{
                f"write: {does(cosine)}": write("attention", 231.4, 220.1, cosine, does(cosine), 55.3, 244.7)
                for cosine in (0.8, 0.3, 0.0, -0.3, -0.8)
            },
            "write: nothing": write("feed-forward", 231.4, 0.0, 0.0, "turns", 0.0, 231.4),
            "write: to zeros": write("feed-forward", 0.0, 2.0, 0.0, "turns", 0.0, 2.0),
            "look for": words.LOOK_FOR,
            "maps": words.MAPS,
            "shortcuts": words.shortcuts(5, "·old"),
            "identity": words.identity(5, WORK, 256, 1.5e-5, "float32"),
            "identity: few dimensions": words.identity(0, WORK, 4, 0.0, "bfloat16"),
            "identity: edited": words.edited(5, WORK, 3.25),
            "without": words.without(5, 5, WORK),
            "without: not the last": words.without(2, 5, WORK),
            "not another model": words.NOT_ANOTHER_MODEL,
            "shares": words.shares(0.0002, "the feed-forward of block 5", 0.623),
            "shares: a change in the stream": words.shares(0.0002, "the attention of block 1", 0.5, 0.25),
            "changes": words.CHANGES,
            "stream of": words.stream_of("·old"),
            "writes of": words.writes_of(4, "·old"),
            "what changed": words.what_changed(
                "·old", words.step("block 4 · attention"), 440, 427, 0.36, 21.2
            ),
            "what changed: from the start": words.what_changed("·old", words.step("embedding"), 1, 0, 1, 0),
            "unchanged writes": words.unchanged_writes([83.7, 67.6], [-0.52, -0.47]),
            "alt": words.ladder_alt("·old", 21, 12),
            "table": words.TABLE,
            "table: all": words.ALL,
        },
    )


def cells(html: str) -> list[list[str]]:
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr class=.*?</tr>", html)]


def test_the_tables_are_the_block() -> None:
    assert cells(tables.lines(WORK)) == [
        ["shortcut = x", "231.4", "231.4"],
        ["x = self.norm1(x)", "6.968", "231.4"],
    ]
    assert cells(tables.additions(WORK)) == [["174", "−23.62", "−17.15", "−105.0", "−145.8"]]
