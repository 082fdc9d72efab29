"""Which pages there are, and the way between them.

A page is a script of `gptviz/ui/pages` whose name is its address. Streamlit can run such a file without
`app.py` in front of it (AppTest does), so the navigation is built by `navigate()`, which `app.py`
calls, and `page()` as well when nobody did: see `ensure_navigation`.
"""

from pathlib import Path
from typing import Any

import streamlit as st

from gptviz.ui.shell import state

UI = Path(__file__).resolve().parents[1]

# section -> file name -> (title, Material icon, the question that the page answers); the first is at "/"
SECTIONS = {
    "Follow the text": {
        "overview": (
            "Overview",
            "route",
            "Type a text and watch a real GPT read it, from the first token to the next.",
        ),
        "tokens": ("Tokens", "content_cut", "How does text become numbers?"),
        "embeddings": (
            "Embeddings",
            "grid_on",
            "What does the model know about a token before it reads the others?",
        ),
        "attention": ("Attention", "visibility", "Which earlier tokens does each token look at?"),
        "layernorm": ("LayerNorm", "equalizer", "How are the numbers kept in range?"),
        "next_token": ("Next token", "bar_chart", "What comes next, and how sure is the model?"),
        "generate": ("Generate", "edit_note", "How does it write on, token by token?"),
    },
    "Take it apart": {
        "residual_stream": (
            "Residual stream",
            "stacked_line_chart",
            "What does each block add to a token's numbers?",
        ),
        "feed_forward": ("Feed-forward", "bolt", "Which units fire for a token, and what do they write?"),
        "logit_lens": ("Logit lens", "lens_blur", "What would it say if it stopped here?"),
        "why": (
            "Why this token?",
            "contact_support",
            "Which parts of the model spoke for this token, and what had they read?",
        ),
    },
    "The laboratory": {
        "heads": ("Heads on trial", "gavel", "What is each head for, and does its label hold?"),
        "knock_out": ("Knock-out", "power_off", "What becomes of the prediction without each part?"),
        "patching": ("Patching", "healing", "Which place carries the answer, and which is needed for it?"),
        "circuit": ("Circuit", "schema", "Which few heads are enough for this prediction?"),
        "compare": ("Compare", "compare", "What differs between two texts, two models, before and after?"),
    },
    "The model": {
        "anatomy": ("Anatomy", "account_tree", "What is the model made of, and how large is each part?"),
    },
    "Build it": {
        "data_windows": ("Data windows", "view_carousel", "How does a text become training examples?"),
        "positions": ("Positions", "pin_drop", "How does a model know where a token stands?"),
        "attention_by_hand": ("Attention by hand", "edit", "How do a few vectors become attention?"),
        "scaling": (
            "Scaling",
            "square_foot",
            "Why divide by √d, why drop weights at random, and what does attention cost?",
        ),
        "loss": ("Loss", "trending_down", "How wrong was the model, position by position?"),
        "baselines": ("Baselines", "grid_view", "How far does one get by counting, and what does a GPT add?"),
        "training": ("Train one now", "model_training", "How does a GPT come to do what it does?"),
    },
}
PAGES = {name: about for section in SECTIONS.values() for name, about in section.items()}
COMPARE = "compare"

_NAVIGATED = "gptviz_navigated"  # what `navigate` left in the session: this run's navigation exists
_TARGETS = "gptviz_targets"  # and its pages


def navigate() -> st.Page:
    """Build the navigation and return the page that the address asks for, ready to run."""
    pages = st.session_state[_NAVIGATED] = _pages()
    # The links are drawn by `draw_links`: those of st.navigation would drop the prompt from the address.
    first = next(iter(PAGES))  # it has two addresses, "/" and its own name
    return st.navigation([*pages.values(), _page(first, url_path=first)], position="hidden")


def ensure_navigation() -> None:
    """Build the navigation where a page's file runs without `app.py`, as AppTest does."""
    if _NAVIGATED not in st.session_state:
        navigate()
    st.session_state[_TARGETS] = st.session_state.pop(_NAVIGATED)


def draw_links() -> None:
    """The pages by section, each a true link that carries prompt, model and selection with it."""
    query = state.link()
    for section, names in SECTIONS.items():
        st.html(f'<p class="gv-section">{section}</p>')
        for name, (title, icon, _) in names.items():
            st.page_link(
                page_target(name),
                label=title,
                icon=f":material/{icon}:",
                query_params=query,
                width="stretch",
            )


def page_target(name: str) -> st.Page:
    """The st.Page called `name`, for st.page_link and st.switch_page."""
    page: st.Page = st.session_state[_TARGETS][name]  # made once a run: each looks its file up on the disk
    return page


def page_file(name: str) -> Path:
    """The script of a page; a page with parts is a folder, whose script is its `__main__.py`."""
    file = UI / "pages" / f"{name}.py"
    return file if file.exists() else file.with_suffix("") / "__main__.py"


def page_title(name: str) -> str:
    """What the page called `name` is called on the screen."""
    return PAGES[name][0]


def question_of(title: str) -> str:
    """The line under a page's title."""
    return next((question for name, _, question in PAGES.values() if name == title), "")


def _pages() -> dict[str, st.Page]:
    """Every page by its name; the first is the default at "/"."""
    first = next(iter(PAGES))
    made = {name: _page(name, url_path=name) for name in PAGES}
    return made | {first: _page(first, url_path="start", default=True)}


def _page(name: str, **options: Any) -> st.Page:
    return st.Page(page_file(name), title=PAGES[name][0], **options)
