"""The file that computes: opened from the disk, with the network off, it gives the numbers of `lm.trace`."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import Phase, given, settings, strategies as st

import gptviz
from gptviz.analysis.moved import prediction
from gptviz.digits import percent
from gptviz.engine.config import GPTConfig
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.sites import all_keys
from gptviz.figures.next_token import probability_text
from gptviz.figures.theme import palette, rgb
from gptviz.model import GPTModel
from gptviz.teach import guides
from gptviz.teach.handout import LARGEST, PAGES, handout
from gptviz.tokenizer import named_bytes, show_token, well_formed
from gptviz.tokenizer.steps import show_work
from gptviz.tokenizer.vocabulary import fitted, of_characters
from gptviz.ui.components.kernel import shared_characters
from gptviz.ui.components.merges import merges_data
from gptviz.ui.shell.state import UNSAID_TEXT
from tests.browser.axe import shut_out
from tests.browser.conftest import new_page

# In the page: a pass for every text; all numbers one after the other as a file, for they are many.
TRACES = """async ([cases, keys]) => {
  const numbers = [], found = [];
  for (const [text, edits, special] of cases) {
    const { ids, sites, logits } = await gptviz.trace(text, edits, { special });
    numbers.push(...keys.map((key) => sites[key].data), logits);
    found.push([ids, keys.map((key) => sites[key].shape), Object.keys(sites).length]);
  }
  const href = URL.createObjectURL(new Blob(numbers));
  Object.assign(document.createElement('a'), { href, download: 'numbers' }).click();
  return found;
}"""  # fmt: skip

WORDS = ["The cat", " sat", "n't", "  \n", "\xa0\x85 ", " 你好", "👩\u200d👩\u200d👧", "٣½", "\ufeff",
         "e\u0301", "\U000e01ef", "'LL", "\x1c", "<|endoftext|>"]  # fmt: skip
PIECES = st.sampled_from(WORDS) | st.text(min_size=1, max_size=3)
TEXTS = st.lists(PIECES, min_size=1, max_size=2).map("".join)
MUTED = st.builds("z.{}.{}=zero".format, st.integers(0, 5), st.integers(0, 7))
OTHERS = ["attn.*=uniform", "attn.2.1+3@-1=first", "attn.4=previous", "attn.2=hide0", "resid_pre.3=mean",
          "resid_mid.1@0=zero", "mlp_out.5=mean", "q.0.2=zero", "pos_emb=mean", "resid_post.2=zero",
          "embed@0=zero", "final=mean", "k.1=mean", "mlp_act.2@-1=zero", "v.2=x-0.5"]  # fmt: skip
EDITS = st.lists(MUTED | st.sampled_from(OTHERS), max_size=2, unique=True)
CASES = st.tuples(TEXTS.map(well_formed), EDITS, st.booleans())


@pytest.fixture(scope="module")
def lm(mini):
    return mini


@pytest.fixture(scope="module")
def opened(browser, lm, tmp_path_factory):
    """opened(hash, of=lm) -> a page of the file of a model, at rest, offline; no fault may come of it."""
    folder = tmp_path_factory.mktemp("handout")
    pages = []

    def open_(hash, of=lm):
        file = folder / f"{of.name}.html"
        if not file.exists():
            guide = guides.find("tour") if of is lm else None
            file.write_text(
                handout(of, UNSAID_TEXT if of is lm else "", guide=guide), encoding="utf-8"
            )
            assert file.stat().st_size <= LARGEST
        page, watch = new_page(browser, offline=True)
        pages.append((page, watch))
        own = ("file:", "blob:", "data:")
        page.on(
            "request", lambda asked: asked.url.startswith(own) or watch.faults.append(asked.url)
        )
        page.goto(f"{file.as_uri()}{hash}")
        return at_rest(page)

    yield open_
    for page, _ in pages:
        page.context.close()
    assert [fault for _, watch in pages for fault in watch.faults] == []


@pytest.fixture(scope="module")
def page(opened):
    """One page, for those who only ask it."""
    return opened("#page=tokens")


def at_rest(page):
    page.wait_for_function(
        "() => document.querySelector('footer') && !('busy' in document.body.dataset)"
    )
    return page


def examples(strategy, number):
    """So many examples of a strategy, to be tried together: a page is opened once."""
    found = []

    @settings(max_examples=number, phases=[Phase.generate], derandomize=True, database=None)
    @given(strategy)
    def collect(one):
        found.append(one)

    collect()
    return found


def near(own, expected, what):
    off = np.abs(own - expected).max()
    largest = np.abs(expected).max()
    assert off <= max(1e-4, 1e-5 * largest), f"{what} is {off} off, of numbers up to {largest}"


def test_every_number_is_that_of_lm_trace(page, lm, tmp_path):
    """200 texts of all of Unicode, heads muted and other edits: ids equal, every site within 1e-4.

    Where a site holds numbers above 10, within 1e-5 of its largest: the stream goes up to 500, and there
    torch's float32 is 4e-4 off what float64 gives. The page, which adds up in double precision, is 8e-5 off.
    """
    tried = [*examples(CASES, 199), (UNSAID_TEXT * 15, ["z.4.3=zero"], False)]
    compare(page, lm, tried, tmp_path)


def compare(page, lm, tried, folder):
    """Hold every number of the page's passes to `lm.trace`."""
    keys = all_keys(lm.config)
    names = [site if block is None else f"{site}.{block}" for site, block in keys]
    with page.expect_download() as download:
        found = page.evaluate(TRACES, [tried, names])
    download.value.save_as(folder / "numbers")
    numbers = np.fromfile(folder / "numbers", dtype="<f4")
    at = 0
    for (text, edits, special), (ids, shapes, count) in zip(tried, found, strict=True):
        trace = lm.trace(lm.encode(text, special_tokens=special), edits=edits)
        case = f"{text!r} with {edits}"
        assert ids == [token.id for token in trace.tokens], case
        assert count == len(keys)
        for key, shape in zip(keys, shapes, strict=True):
            expected = trace[key].numpy()
            near(numbers[at : at + expected.size].reshape(shape), expected, f"{key} of {case}")
            at += expected.size
        near(
            numbers[at : at + lm.config.vocab_size],
            trace.logits(-1).numpy(),
            f"the logits of {case}",
        )
        at += lm.config.vocab_size
    assert at == len(numbers)


def test_a_model_of_another_kind(opened, tmp_path):
    """Of characters, with an exact GELU, biases where mini has none, sizes that four does not divide."""
    characters = {character: id for id, character in enumerate("ab \n你👩é")}
    sizes = {"context_length": 9, "emb_dim": 6, "n_heads": 3, "n_layers": 2}
    bias = {"qkv_bias": True, "norm_bias": False, "linear_bias": False}
    special = {"b": 1, "ba": 7, "éé": 8, "aéé": 9}  # the first is a character, too
    config = GPTConfig(10, **sizes, **bias, activation="gelu", norm_eps=1e-3)
    torch.manual_seed(1)
    model = GPTModel(config).eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight)
    vocabulary = replace(of_characters(characters), special=special, words=frozenset({"ba", "aéé"}))
    tokenizer = fitted(vocabulary, "letters", 10)
    other = LanguageModel(model, tokenizer, config, "letters<b>")
    page = opened("", of=other)
    assert page.title() == "letters<b>: a GPT in one file"
    assert "no text yet" in page.get_by_role("status").inner_text()
    tried = [
        ("a", [], False),
        ("你a b\n👩ébb", ["z.1.2=zero"], False),
        ("é👩", ["attn.*=uniform"], True),
    ]
    tried += [
        (text, [], special)
        for text in ("babaéé", "aéébé", "ébéé", "b ba")
        for special in (False, True)
    ]
    assert other.encode("babaéé aéé") == [7, 7, 6, 6, 2, 9] and other.encode("aéébéé", True) == [
        9,
        1,
        8,
    ]
    compare(page, other, tried, tmp_path)
    page.get_by_role("textbox").fill("axb")
    page.get_by_role("button", name="Run").click()
    assert "knows only the 10 tokens" in at_rest(page).get_by_role("status").inner_text()


def test_what_cannot_be_computed_is_refused_in_a_sentence(page):
    cases = [["", []], ["a " * 300, []]]
    cases += [["a b", [edit]] for edit in ("z.9.3=zero", "z.4.3=sample", "z.4=first", "x")]
    refused = "(cases) => Promise.all(cases.map((one) => gptviz.trace(...one).catch(({ message }) => message)))"
    whys = [
        "no tokens",
        "do not fit",
        "no block 9",
        "must be zero",
        "where a head looks",
        "is written",
    ]
    for sentence, why in zip(page.evaluate(refused, cases), whys, strict=True):
        assert why in sentence
    half, whole = (
        page.evaluate(f"gptviz.trace('\\u{one}x').then(({{ ids }}) => ids)")
        for one in ("d800", "fffd")
    )
    assert half == whole


def test_tokens_look_as_in_the_app(page, lm):
    ids = range(lm.config.vocab_size)
    assert page.evaluate("(ids) => ids.map(shownOf)", [*ids]) == [
        show_token(named_bytes(lm.tokenizer, id)) for id in ids
    ]
    for text in examples(TEXTS, 50):
        raws = [named_bytes(lm.tokenizer, id) for id in lm.encode(text)]
        own = page.evaluate("(raws) => sharing(raws)", [raw.decode("latin-1") for raw in raws])
        assert own == [list(group) for group in shared_characters(raws)], text
    asked = []
    expected = []
    for text in [
        *examples(TEXTS, 60),
        "The unbelievable umbrella",
        "antidisestablishmentarianism" * 2,
    ]:
        at = 0
        for piece in show_work(lm.tokenizer, text, special_tokens=True):
            mine = {"raw": piece.raw.decode("latin-1"), "ids": piece.ids}
            mine |= {"special": piece.special, "word": piece.word}
            for part in range(len(piece.ids)):
                asked.append([mine, part, at + part])
                expected.append(merges_data(lm.tokenizer, piece, part, at + part))
            at += len(piece.ids)
    assert page.evaluate("(all) => all.map((one) => mergesOf(...one))", asked) == expected


def test_a_lesson_on_it(opened, lm):
    """A head is switched off, the effect is the app's; everybody can read every page, on a phone too."""
    page = opened("#page=attention&block=4&head=3")
    page.get_by_test_id("head-4-3").click()
    page.get_by_test_id("switch-head").click()
    effect = at_rest(page).get_by_test_id("change-effect")
    plain = lm.trace(UNSAID_TEXT)
    muted = lm.trace(UNSAID_TEXT, edits=["z.4.3=zero"])
    moved = prediction(plain.logits(-1), muted.logits(-1))
    for name, value in {"before": moved.before, "now": moved.after, "kl": moved.kl}.items():
        assert float(effect.get_attribute(f"data-{name}")) == pytest.approx(value, abs=1e-4)
    for kind, first in (("svg", b"<svg"), ("png", b"\x89PNG")):
        with page.expect_download() as download:
            page.locator("[data-part=head]").get_by_test_id(f"save-{kind}").click()
        assert (
            download.value.suggested_filename
            == f"gptviz-attention-block4-head3-token15-changed.{kind}"
        )
        assert download.value.path().read_bytes().startswith(first)
    page.get_by_role("link", name="Next token").click()
    first = page.get_by_test_id("candidate").first
    best = muted.next_tokens(1, temperature=0.5).iloc[0]
    page.get_by_role("slider", name="Temperature").fill("0.5")
    page.get_by_text(probability_text(float(best.probability))).first.wait_for()
    assert float(first.get_attribute("data-probability")) == pytest.approx(
        best.probability, abs=1e-4
    )
    first.get_by_test_id("append").click()
    assert at_rest(page).get_by_role("textbox").input_value() == UNSAID_TEXT + best.token
    assert "z.4.3%3Dzero" in page.evaluate("location.hash")

    in_python = {}
    text = "one 東京 <b> one"
    for name in PAGES:
        page.goto(f"{page.url.split('#')[0]}#page={name}&text=one+東京+<b>+one&edits=z.4.3%3Dzero")
        page.locator(f"section[data-page={name}]").wait_for()
        in_python[name] = eval(
            page.locator("footer code").first.inner_text(), {"gptviz": gptviz, "text": text}
        )
        for mode, other, width in (("dark", "light", 390), ("light", "dark", 1280)):
            page.emulate_media(color_scheme=mode)
            page.set_viewport_size({"width": width, "height": 800})
            page.locator(f".gv[data-mode={other}]").filter(visible=True).first.wait_for(
                state="detached"
            )
            assert shut_out(at_rest(page)) == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            drawn_on = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert drawn_on == f"rgb{rgb(palette(mode).paper)}"
    changed = lm.trace(text, edits=["z.4.3=zero"])
    assert torch.equal(in_python["attention"], changed["attn", 5])
    assert in_python["next_token"].equals(changed.next_tokens())
    page.goto(f"{page.url.split('#')[0]}#page=constructor&text=one&temperature=abc")
    at_rest(page).locator("section[data-page=attention]").wait_for()
    page.get_by_role("link", name="Next token").click()
    assert page.get_by_role("slider", name="Temperature").input_value() == "1"
    page.get_by_role("textbox").fill("")
    page.get_by_role("button", name="Run").click()
    assert "no text yet" in at_rest(page).get_by_role("status").inner_text()


def test_a_head_whose_weights_are_off_has_moved_by_1(opened):
    head = at_rest(opened("#page=attention&block=4&head=3&edits=attn.4%3Dzero")).get_by_test_id(
        "head-4-3"
    )
    assert "Its pattern moved by 1.0." in head.get_attribute("aria-label")


def test_on_a_phone_neither_the_box_nor_the_tokens_are_cut(opened):
    page = opened("#page=tokens")
    page.set_viewport_size({"width": 390, "height": 844})
    hidden = "(one) => one.scrollHeight - one.clientHeight"
    for one in (page.get_by_role("textbox", name="Prompt"), page.get_by_test_id("chips")):
        page.wait_for_function(f"(one) => ({hidden})(one) <= 0", arg=one.element_handle())
    assert page.get_by_test_id("chip").count() == len(gptviz.load("mini").encode(UNSAID_TEXT))


def test_on_paper_it_has_no_buttons(opened):
    page = opened("#page=attention")
    page.emulate_media(media="print")
    for action in ("nav a", ".act", ".save", ".run"):
        assert (
            page.locator(action).count() and not page.locator(action).filter(visible=True).count()
        ), action
    assert page.get_by_test_id("chip").first.is_visible()


def test_the_tour_travels_in_it(opened, lm):
    """It asks before it shows, says what this model says, and what it has not."""
    page = opened("")
    bar = page.get_by_test_id("guide")
    chips = page.get_by_test_id("chips")
    assert "step 1 of 6" in bar.inner_text() and not chips.count()
    assert not page.locator("section[data-page]").count()
    bar.get_by_role("button", name="A hint").click()
    bar.get_by_role("textbox").fill("<b>rose")
    bar.get_by_role("button", name="That is my guess").click()
    asked = dict(guides.find("tour").steps[0].place)["text"]
    best = lm.trace(asked).next_tokens(1).iloc[0]
    told = bar.get_by_role("status").inner_text()
    answer = best.token.replace(" ", "·")
    assert f"You said <b>rose. This model: {answer}" in told and percent(best.probability) in told
    assert page.locator("section[data-page=next_token]").count() == chips.count() == 1
    for number in range(2, 7):
        bar.get_by_role("button", name="Next step").click()
        at_rest(page)
        if number == 4:
            bar.get_by_test_id("head-4-3").click()
            assert "You said block 4, head 3. This model: block 4, head 3" in bar.inner_text()
        elif number == 3:
            bar.get_by_role("radio", name="black").check()
            bar.get_by_role("button", name="That is my guess").click()
            assert "You said ·black. This model: ·black." in bar.inner_text()
        elif number < 6:
            assert shut_out(page) == []
            bar.get_by_role("button", name="Show me").click()
            assert "This model: " in bar.inner_text()
    assert "2 more steps of this guide" in bar.inner_text()
    page.get_by_test_id("switch-head").click()
    at_rest(page)
    assert "Done." in bar.inner_text()
    bar.get_by_role("button", name="Leave").click()
    page.get_by_role("button", name="The tour").click()
    assert "You said <b>rose" in bar.inner_text()
