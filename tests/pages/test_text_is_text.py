"""What an address or a file says is text: it becomes no link, picture or HTML on the screen that shows it."""

import json

import pytest
import tiktoken

from gptviz.engine.language_model import LanguageModel
from gptviz.teach.guides import SETTING, GuideError, files, guide, keys, read
from gptviz.teach.guides.answers import CannotAsk
from gptviz.teach.guides.keys import KEYS
from gptviz.ui.models.in_use import ALLOW_PATHS
from gptviz.ui.shell.navigation import PAGES
from gptviz.ui.teach.question import ANSWERS
from tests.conftest import random_lm
from tests.live import BAIT, HOST, TICKED, alive, live
from tests.models.checkpoints import makers
from tests.pages.conftest import open_all, run_page
from tests.pages.test_any_model import use
from tests.pages.test_many import of_set

# what makes a page read more of its address than it does at first
OPENS = {
    "compare": [{"vs": "text"}, {"vs": "model", "vs_model": f"path:{BAIT}"}, {"vs": "edits"}],
    "circuit": [{"circuit": "4.3", "target": "40"}],
}
SHORT = {"base_steps": 50, "base_measure": "off"}


@pytest.mark.parametrize("page", PAGES)
def test_an_address_brings_nothing_to_life(page, monkeypatch):
    monkeypatch.setenv(ALLOW_PATHS, "1")
    params = run_page(page, **SHORT).session_state["gptviz_params"]
    names = [param.name for param in params if param.parse(BAIT) == BAIT]
    assert {"text", "guide", "edits", "model", "claims", "tokenizer"} <= {*names}
    here = SHORT | dict.fromkeys(names, BAIT) | {"whole": "on"}
    lines = dict.fromkeys(names, f"a\n\n{BAIT}")
    found = []
    for more in ({"model": f"path:{BAIT}"}, lines, *OPENS.get(page, ())):
        found += live(open_all(run_page(page, **here | more)))
    assert not found, "\n".join(dict.fromkeys(found))


# ---- a model whose files are bait ----


@pytest.fixture(scope="module")
def baiting() -> LanguageModel:
    """As large as the bundled model: the guides ask for its heads."""
    return bait_model(n_layers=6, n_heads=8)


@pytest.fixture(scope="module")
def small_baiting() -> LanguageModel:
    """A small one, with which a page's maps and searches take no time."""
    return bait_model(n_layers=2, n_heads=4)


def bait_model(**sizes: int) -> LanguageModel:
    """A model whose name is bait, and so is each of its tokens but the bytes."""
    ranks = {bytes([byte]): byte for byte in range(256)}
    for word in (BAIT.encode(), TICKED.encode()):
        for end in range(2, len(word) + 1):
            ranks.setdefault(word[:end], len(ranks))
    tokenizer = tiktoken.Encoding(
        BAIT, pat_str=r"\S[\S\s]*", mergeable_ranks=ranks, special_tokens={}
    )
    lm = random_lm(vocab_size=len(ranks), **sizes)
    return LanguageModel(lm.model, tokenizer, lm.config, BAIT)


TEXT = BAIT + TICKED + BAIT + "ab" + TICKED


@pytest.mark.parametrize("page", PAGES)
def test_a_models_name_and_tokens_bring_nothing_to_life(page, monkeypatch, small_baiting):
    use(small_baiting, "bait", monkeypatch)
    first, second, *_ = small_baiting.tokens(small_baiting.encode(TEXT))
    assert (first.raw, second.raw) == (BAIT.encode(), TICKED.encode())
    place = {"block": 1, "head": 2, "edits": "z.0.1=zero", "token": 1}
    found = live(open_all(run_page(page, whole="on", text=TEXT, **SHORT, **place)))
    found += live(run_page(page, text=TEXT * 99, **SHORT))  # more than it reads, which is said
    assert not found, "\n".join(dict.fromkeys(found))


def test_no_answer_of_a_key_brings_anything_to_life(baiting):
    says = {"word": BAIT, "number": 3, "choice": BAIT, "token": 0, "head": (0, 0)}
    tried = set()
    for step in (step for file in files().values() for step in read(file.read_text("utf-8")).steps):
        for given in (None, says.get(step.ask.kind)) if step.ask else ():
            arguments = keys.arguments(step.ask.key, step.ask.kind, step.ask.given)
            try:
                sites = keys.sites(step.ask.key, baiting, 1, given, *arguments)
                trace = baiting.trace(TEXT, keep=sites)
                answer = KEYS[step.ask.key][1](baiting, trace, 1, given, *arguments)
            except CannotAsk:  # what a screen says of it is escaped
                continue
            tried.add(step.ask.key)
            for said in (answer.shown, answer.said, *answer.options, *answer.facts.values()):
                assert not alive(f"It says {said}."), (step.ask.key, said)
    assert {"next_word", "looked_at", "lens_word"} <= tried


def bait_in_config(folder):
    """A folder a field of config.json, each with the bait in that."""
    makers.save_hf(
        makers.hf_model(vocab_size=500, n_embd=12, n_head=3, n_layer=1), folder / "whole"
    )
    config = json.loads((folder / "whole" / "config.json").read_text())
    for name in config:
        made = folder / f"{name}{HOST}"
        made.mkdir()
        for file in (folder / "whole").iterdir():
            (made / file.name).write_bytes(file.read_bytes())
        (made / "config.json").write_text(json.dumps(config | {name: BAIT}))
        yield made


def test_what_is_wrong_with_a_models_files_brings_nothing_to_life(monkeypatch, tmp_path):
    monkeypatch.setenv(ALLOW_PATHS, "1")
    said = 0
    for folder in bait_in_config(tmp_path):
        at = run_page("anatomy", model=f"path:{folder}")
        assert not live(at), folder
        said += any("bait" in error.value for error in at.error)
    assert said > 3  # of them are told, with the bait in the sentence


# ---- guides, and sets of texts ----

FIELDS = [
    *(name for name, kind in guide.HEAD.items() if kind is str),
    *("heading", "above", "below", "page", "look", "place", "until", "with"),
    *("kind", "question", "key", "options", "hints"),
]


def guide_of(**fields):
    """A guide's file with one step, whose fields are these."""
    of = {name: "plain" for name in FIELDS} | {
        "page": "overview",
        "kind": "choice",
        "key": "row_again",
    }
    of |= {"place": "The cat", "until": "The cat", **fields}
    head = {name: of[name] for name in guide.HEAD if name in of}
    ask = {name: of[name] for name in ("kind", "question", "key")}
    ask |= {name: [of[name], of[name]] for name in ("options", "hints")}
    if "with" in fields:
        ask["with"] = {"edit": of["with"]}
    step = {"page": of["page"], "look": of["look"], "place": {"text": of["place"]}, "ask": ask}
    step["until"] = {"text": of["until"]}
    lines = ["---", *(f"{name}: {json.dumps(value)}" for name, value in head.items()), "---"]
    lines += [f"## {of['heading']}", "", of["above"], "", "```step"]
    lines += [f"{name}: {json.dumps(value)}" for name, value in step.items()]
    return "\n".join([*lines, "```", "", of["below"], ""])


def is_read(text):
    """Whether this is a guide that can be opened."""
    try:
        read(text)
    except GuideError:
        return False
    return True


BARE = f"www.{HOST} https://{HOST}/d a@{HOST}"  # what nobody marked as a link
GUIDES = [guide_of(**{field: BAIT}) for field in FIELDS] + [guide_of(**dict.fromkeys(
    ("title", "learnt", "for", "heading", "above", "below", "question", "options", "hints", "place"), BARE
))]  # fmt: skip


@pytest.mark.parametrize("text", GUIDES, ids=[*FIELDS, "addresses"])
def test_a_guide_brings_nothing_to_life(text, monkeypatch, tmp_path):
    monkeypatch.setenv(SETTING, str(tmp_path))
    (tmp_path / "mine.md").write_text(text)
    at = run_page("overview")
    at.session_state["guide_lessons"] = True
    found = live(at.run())
    answered = [{}]
    if is_read(text):  # else its warning is all that there is
        answered += [{("mine", 0): "plain"}, {("mine", 0): None}]
    for answers in answered:
        at = run_page(
            "overview", {ANSWERS: answers, "guide_hints": {("mine", 0): 2}}, guide="mine", step=1
        )
        found += live(at)
    at = run_page("class")
    at.selectbox(key="class_guide").set_value("mine")
    button = next(button for button in at.button if button.label == "Begin a class")
    found += live(button.click().run())
    assert not found, "\n".join(dict.fromkeys(found))


@pytest.mark.parametrize("page", ["knock_out", "why", "patching"])
def test_a_set_of_texts_brings_nothing_to_life(page, monkeypatch, small_baiting):
    use(small_baiting, "bait", monkeypatch)
    lines = (BAIT, f"{BAIT}\t{TICKED}", f"{BAIT}\t\t{BAIT}x", f"ab\tcd\t{BAIT}", "\t" + BAIT)
    measure = {"measure": "logit"} if page == "knock_out" else {}
    assert not live(open_all(of_set(page, lines, **measure)))
