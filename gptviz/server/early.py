"""What a browser that opens a page will need, said with the page's first bytes.

Streamlit's script connects, the page's script runs, and only what it sends tells the browser which code to
fetch: that of charts is 1.4 MB, and that of each component imports the kernel, and the kernel Preact. Named in
a header, all of it comes while Streamlit starts.
"""

from functools import cache

from gptviz.ui.components.code import PATH, component_files
from gptviz.ui.components.theme_watch import charts_file, streamlit_file

# pages with one of Plotly's charts before their reader scrolls
CHARTED = {
    "embeddings", "feed_forward", "next_token", "anatomy", "loss", "baselines",
    "why", "heads", "knock_out", "circuit", "patching", "compare",
}  # fmt: skip
EVERYWHERE = ("theme_watch", "prompt", "chips")  # components


def links(path: str) -> str:
    """The header `Link` of the page at this path. Its addresses are relative to the page's, as in its HTML."""
    return _links(path.rpartition("/")[2] in CHARTED)


@cache
def _links(charted: bool) -> str:
    files = [f"{PATH}/{file}" for file in component_files(EVERYWHERE)]
    parts = [streamlit_file("BidiComponent")]
    if charted:
        parts.append(charts_file())
    files += [f"static/js/{part}" for part in parts if part]
    return ", ".join(f"<{file}>; rel=modulepreload" for file in files)
