"""axe-core 4.14.1 (`axe.min.js` of its npm package; MPL 2.0, see LICENSE) in a page of ours."""

from pathlib import Path
from typing import Any

AXE = Path(__file__).with_name("axe.min.js").read_text("utf-8")

# WCAG 2.2, A and AA, and what axe-core advises beside it; it looks into the components' shadows as well.
RUN = """async () => {
  const runOnly = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
  const { violations } = await axe.run(document, { resultTypes: ['violations'], runOnly });
  const grave = violations.filter(({ impact }) => ['serious', 'critical'].includes(impact));
  return grave.flatMap(({ id, nodes }) => nodes.map(({ html, any, all, none }) =>
    `${id}: ${html.slice(0, 200)}: ${[...any, ...all, ...none].map(({ message }) => message).join('; ')}`));
}"""


def shut_out(page: Any) -> list[str]:
    """What is serious or critical on a page for somebody who does not see, hear or point as others do."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(f"() => {{ {AXE} }}")
    found: list[str] = page.evaluate(RUN)
    return found
