"""Which pages there are, and the way between them.

A page is a script of `pages/` whose name is its address. Streamlit can run such a file without
`app.py` in front of it (AppTest does), so the navigation is built by `navigate()`, which `app.py`
calls through `run()`, and `start_page` as well when nobody did: see `ensure_navigation`.
"""

from contextlib import nullcontext, suppress
from copy import copy
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import streamlit as st
from streamlit.runtime.scriptrunner import StopException

from gptviz import LanguageModel
from gptviz.engine.architecture import architecture_of
from gptviz.files.app_folder import APP_FOLDER
from gptviz.ui import runs
from gptviz.ui.shell import address, state
from gptviz.ui.shell.slots import slot
from gptviz.ui.teach import classroom, cover
from gptviz.ui.words import escaped

SCRIPTS = APP_FOLDER / "pages"


class Door(NamedTuple):
    """What the navigation says of a page; `next` is the page after it, and `on_next` what to do there."""

    title: str
    icon: str  # a Material icon
    question: str  # that the page answers
    next: str
    on_next: str  # a short sentence
    in_list: str = ""  # what the list calls it, where that is not its title

    @property
    def name(self) -> str:
        """What the page is called on the screen: in the list, above its heading, and where a way leads to it."""
        return self.in_list or self.title


# section -> file name -> door; the first page is at "/". The doors of the first section are always seen,
# those of any other one behind its heading
# fmt: off
SECTIONS = {
    "Read a text": {
        "overview": Door("Overview", "route",
            "What does a GPT do? It guesses the next word.",
            "tokens", "See how the text is cut into tokens.", "Guess"),
        "tokens": Door("Tokens", "content_cut", "How does text become numbers?",
            "embeddings", "See the vector that the model looks up for each token."),
        "embeddings": Door("Embeddings", "grid_on",
            "What does the model know about a token before it reads the others?",
            "layernorm", "See how every block first brings these numbers into range."),
        "layernorm": Door("LayerNorm", "compress", "How are the numbers kept in range?",
            "attention", "See the only place where a token reads other tokens."),
        "attention": Door("Attention", "visibility", "Which earlier tokens does each token look at?",
            "feed_forward", "See what the block does with each token by itself."),
        "feed_forward": Door("Feed-forward", "bolt", "Which units fire for a token, and what do they add?",
            "next_token", "See how the numbers after the last block become a guess."),
        "next_token": Door("Next token", "bar_chart", "What comes next, and how sure is the model?",
            "generate", "Let the model write a text, one guess after another."),
        "generate": Door("Generate", "edit_note", "How does it write on, token by token?",
            "data_windows", "See how a text becomes examples to learn from."),
    },
    "With the book, by chapter": {
        "data_windows": Door("Data windows", "counter_2", "How does a text become training examples?",
            "positions", "See how a model tells the same token at two places apart."),
        "positions": Door("Positions", "counter_2", "How does a model know a token's position?",
            "attention_by_hand", "Calculate attention from a few small vectors, step by step."),
        "attention_by_hand": Door("Attention by hand", "counter_3", "How do a few vectors become attention?",
            "anatomy", "See how large these matrices are in a whole GPT."),
        "anatomy": Door("Anatomy", "counter_4", "What is the model made of, and how large is each part?",
            "loss", "See the one number that says how good all these parameters are."),
        "loss": Door("Loss", "counter_5", "How wrong was the model, position by position?",
            "baselines", "Compare this loss with the loss of simpler models."),
        "baselines": Door("Baselines", "counter_5",
            "How far does one get by counting, and what does a GPT add?",
            "training", "Train a small GPT and see whether it beats the bigram."),
        "training": Door("Train one now", "counter_5", "How does a GPT come to do what it does?",
            "residual_stream", "See what each block adds."),
    },
    "Explain": {
        "residual_stream": Door("Residual stream", "stacked_line_chart",
            "What does each block add to a token's numbers?",
            "logit_lens", "Read the stream as a guess after every block."),
        "logit_lens": Door("Logit lens", "lens_blur", "What would it say if it stopped here?",
            "why", "See which parts of the model spoke for the guess."),
    },
    "Which part did it?": {
        "why": Door("Why this token?", "contact_support",
            "Which parts of the model spoke for this token, and what had they read?",
            "heads", "Put a head's habit to the test."),
        "heads": Door("What each head does", "manage_search", "What does each head do, and does its label hold?",
            "knock_out", "See which parts this prediction needs."),
        "knock_out": Door("Switch parts off", "power_off", "What becomes of the guess when one part is switched off?",
            "circuit", "See which few heads are enough."),
        "circuit": Door("Circuit", "schema", "Which few heads are enough for this prediction?",
            "patching", "Find the tokens where these heads matter."),
        "patching": Door("Patching", "healing", "Where in the model is the answer, and which place is needed for it?",
            "overview", "Type a text of your own and ask all of this again."),
    },
}
# pages that the list does not have: a button or another page leads there
UNLISTED = {
    "compare": Door("Compare", "compare", "What differs between two texts, two models, before and after?",
        "why", "See which parts of the model spoke for each token."),
    "class": Door("Class", "groups", "How do we work through a lesson together?",
        "overview", "Explore the model on your own."),
}
# fmt: on
PAGES = {name: door for section in SECTIONS.values() for name, door in section.items()} | UNLISTED
FIRST = "overview"
COMPARE = "compare"
CLASS = "class"
# the tabs of one bench, which asks all of them the same: see `bench`
BENCH = tuple(SECTIONS["Which part did it?"])
# what was a page: where that is now, and which choice opens it there, by what else the address says
MOVED = {
    "scaling": (
        "attention_by_hand",
        "hand_way",
        {"sc_weights": "dropout", "sc_p": "dropout", "": "root"},
    )
}

_NAVIGATED = "gptviz_navigated"  # what `navigate` left in the session: this run's navigation exists
_TARGETS = "gptviz_targets"  # and its pages
_CALLED = "gptviz_called"  # the pages that have another name for the session's model


def run() -> None:
    """Run the page that the address asks for, and draw the way to the next one below it."""
    page = navigate()
    name = next(name for name, target in st.session_state[_NAVIGATED].items() if target is page)
    # A page with no part that looks for news stands there as before when its server was restarted, or is
    # another one now, and the first click in it is lost: the new server has not run it.
    interval = classroom.EVERY if classroom.secret() else timedelta(days=7)
    st.fragment(run_every=interval)(_look_for_news)(name, address.page())
    # A page that has nothing more to show stops. A script that does keeps the parts of the page before.
    with suppress(StopException), slot():
        try:
            page.run()
        except runs.Busy as error:
            # whichever of its runs the page could not have: that of a text, or of another beside it
            st.warning(f"Nothing more is shown yet: {escaped(str(error))}.")
    _draw_next(name)


def _look_for_news(name: str, page: str) -> None:
    """Draw nothing; rerun the page if its class has moved on.

    A browser that is slow to learn that its class led it on asks for this as a part of the page before.
    Streamlit has it show that page then, empty: what is not a script's first part would find no place there.
    """
    if not address.is_fragment_run():
        return
    if page != address.page():
        st.switch_page(page_target(name), query_params=state.link())
    if classroom.has_moved():
        st.rerun()


def navigate() -> st.Page:
    """Build the navigation and return the page that the address asks for, ready to run."""
    cover.end()  # of the run before: nothing of this one, its look for news included, is to be left out
    first = next(iter(PAGES))
    pages = {name: copy(_page(name, name)) for name in PAGES}
    pages[first] = copy(_page(first, "start", default=True))
    # other addresses: the first page is at "/" and at its own name
    aliases = {alias: copy(_page(new, alias)) for alias, (new, *_) in MOVED.items()}
    aliases[first] = copy(_page(first, first))
    # The links are drawn by `draw_links`: those of st.navigation would drop the prompt from the address.
    page: st.Page = st.navigation([*pages.values(), *aliases.values()], position="hidden")
    alias = next((alias for alias, alias_page in aliases.items() if alias_page is page), "")
    if alias in MOVED:
        _, choice, values = MOVED[alias]
        parameter = next((key for key in values if key in st.query_params), "")
        st.session_state.setdefault(choice, values[parameter])
    if alias:
        # its link is marked, whatever it is called
        pages[MOVED[alias][0] if alias in MOVED else alias] = page
    st.session_state[_NAVIGATED] = pages
    return page


def ensure_navigation() -> None:
    """Build the navigation where a page's file runs without `app.py`, as AppTest does."""
    if _NAVIGATED not in st.session_state:
        navigate()
    st.session_state[_TARGETS] = st.session_state.pop(_NAVIGATED)


def speak_of(lm: LanguageModel) -> bool:
    """Call the pages from now on as the record of this model's kind does; whether some have another name now."""
    before = st.session_state.get(_CALLED, {})
    now = architecture_of(lm.config).called
    st.session_state[_CALLED] = now
    return now != before


def called(name: str, usual: str | None = None) -> str:
    """What a page is called on the screen for the session's last model; `usual` for any other than its name."""
    return str(st.session_state.get(_CALLED, {}).get(name, usual or PAGES[name].name))


def draw_links(here: str) -> None:
    """Draw the pages, each as a true link that carries prompt, model and selection with it.

    The one called `here` is marked. The first section has no heading; any other is folded, unless `here` is in it.
    """
    open_pages = classroom.open_pages() or (*PAGES,)
    first = next(iter(SECTIONS))
    with st.container(key="gv_pages", gap=None):
        for section, all_doors in SECTIONS.items():
            doors = {name: door for name, door in all_doors.items() if name in open_pages}
            if section == first:
                _draw_doors(doors, here)
            elif doors:
                with st.expander(section, expanded=here in doors, type="compact"):
                    _draw_doors(doors, here)


def _draw_doors(doors: dict[str, Door], here: str) -> None:
    query = state.link()
    for name, door in doors.items():
        # the first page by its name is the guess, wherever in the picture its reader was
        link(
            name,
            query | {"at": ""} if name == FIRST else query,
            "pages" if name == here else "",
            label=called(name),
            icon=f":material/{door.icon}:",
            width="stretch",
        )


def link(name: str, query: dict[str, str], here: str = "", **options: Any) -> None:
    """Draw a link to a page; `here` names the place where it stands, if it is marked as the open one."""
    with st.container(key=f"gv_here_{here}") if here else nullcontext():
        st.page_link(
            page_target(name),
            **{"label": called(name, PAGES[name].title), "query_params": query} | options,
        )


def _draw_next(name: str) -> None:
    if state.GUIDE.value is not None:
        return  # the guide knows the way
    door = PAGES[name]
    open_pages = classroom.open_pages()
    if open_pages and door.next not in open_pages:
        return
    with address.as_the_page(), st.container(key="gv_next", horizontal=True, gap="small"):
        label = f"Next: **{called(door.next)}**"
        link(door.next, state.link(), label=label, icon=":material/arrow_forward:")
        st.markdown(door.on_next, width="content")


def neighbours(name: str) -> tuple[str, str]:
    """The page before this one, and the page after it."""
    before = next((other for other, door in PAGES.items() if door.next == name), next(iter(PAGES)))
    return before, PAGES[name].next


def page_target(name: str) -> st.Page:
    """The st.Page called `name`, for st.page_link and st.switch_page."""
    page: st.Page = st.session_state[_TARGETS][name]
    return page


def folder_of(path: str) -> str:
    """The folder that the app lies in, as the path of an address of it says: "/course/gpt", or "".

    The path may end in the name of a page or not.
    """
    parts = path.strip("/").split("/")
    if parts[-1] in (*PAGES, *MOVED, "start"):
        parts.pop()
    return "".join(f"/{part}" for part in parts if part)


def page_file(name: str) -> Path:
    """The script of a page."""
    return SCRIPTS / f"{name}.py"


def name_of(title: str) -> str:
    """The page with this title."""
    return next(name for name, door in PAGES.items() if door.title == title)


@cache
def _page(name: str, address: str, default: bool = False) -> st.Page:
    """The page of this name at an address, to be copied: making one looks its file up on the disk."""
    return st.Page(page_file(name), title=PAGES[name].title, url_path=address, default=default)
