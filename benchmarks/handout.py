"""What a pass costs in the hand-out: all sites of one text in the browser, beside `lm.trace` in Python.

PYTHONPATH=. python benchmarks/handout.py [MODEL]
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

import gptviz
from gptviz.teach.handout import handout
from tests.browser.conftest import CHROMIUM_ARGS, chromium

TOKENS = (22, 64, 225)
TIMES = 15
IN_PAGE = """async ([text, times]) => {
  const taken = [];
  for (let i = 0; i < times; i++) {
    const start = performance.now();
    await gptviz.trace(text);
    taken.push(performance.now() - start);
  }
  return taken;
}"""


def main() -> None:
    lm = gptviz.load(*sys.argv[1:2])
    story = (Path(gptviz.__file__).parent / "assets" / "text" / "alice_chapter_1.txt").read_text(
        "utf-8"
    )
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "handout.html"
        file.write_text(handout(lm, "Hello"), "utf-8")
        browser = playwright.chromium.launch(executable_path=chromium(), args=CHROMIUM_ARGS)
        page = browser.new_page()
        start = time.perf_counter()
        page.goto(file.as_uri())
        page.wait_for_selector("footer")
        print(
            f"{file.stat().st_size / 1e6:.1f} MB, on the screen after {time.perf_counter() - start:.1f} s"
        )
        print(f"{'tokens':>6} {'browser':>9} {'lm.trace':>9}")
        for tokens in TOKENS:
            text = lm.decode(lm.encode(story)[:tokens])
            ours = page.evaluate(IN_PAGE, [text, TIMES])
            theirs = []
            for _ in range(TIMES):
                start = time.perf_counter()
                lm.trace(text)
                theirs.append(1000 * (time.perf_counter() - start))
            print(
                f"{tokens:6} {statistics.median(ours):6.0f} ms {statistics.median(theirs):6.0f} ms"
            )
        browser.close()


if __name__ == "__main__":
    main()
