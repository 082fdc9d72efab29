"""The Tokens page in Chromium: the values behind the pictures are tiktoken's."""

from urllib.parse import urlencode

from gptviz.tokenizer import encode, get_encoding, token_bytes
from gptviz.tokenizer.steps import show_work
from tests.browser.conftest import by, press, settled, type_prompt

MINI = get_encoding("mini")
GPT2 = get_encoding("gpt2")
TEXT = "Unbelievably, the café in 東京\nsells 🍣."


def read(page, test_id, value):
    """What a piece of JavaScript says of each of these."""
    page.get_by_test_id(test_id).first.wait_for()
    return page.get_by_test_id(test_id).evaluate_all(f"all => all.map((one) => {value})")


def cards(page):
    card = "[Number(one.dataset.position), Number(one.dataset.id), one.dataset.bytes]"
    return read(page, "token-card", card)


def expected_cards(encoding, text, special=False):
    ids = encode(encoding, text, special)
    return [[position, id, token_bytes(encoding, id).hex(" ")] for position, id in enumerate(ids)]


def test_cards_are_of_what_was_typed_and_a_click_shows_merges_and_selects_everywhere(open_page):
    page = open_page("tokens", token=0)
    type_prompt(page, "supercalifragilistic " * 100)
    # the model's context
    assert cards(page) == expected_cards(MINI, "supercalifragilistic " * 100)[:256]
    for text in ("\t<b>&amp;</b>  `x`", TEXT):
        type_prompt(page, text)
        assert cards(page) == expected_cards(MINI, text)
        cut = read(page, "piece", "one.querySelectorAll('[data-testid=token-card]').length")
        assert cut == [len(piece.ids) for piece in show_work(MINI, text)]
    piece = show_work(MINI, TEXT)[0]
    for position in range(len(piece.ids)):
        press(page.locator(by("token-card", position=position)))
        assert read(page, "merge-id", "Number(one.dataset.id)") == list(piece.ids)
        assert page.locator("[data-testid=merge-id].mine").get_attribute("data-position") == str(
            position
        )
        chip = page.locator("[data-testid=chip][aria-pressed=true]").first
        assert (
            chip.get_attribute("data-position") == str(position) and f"token={position}" in page.url
        )


def test_walking_through_the_merges_and_a_special_token_has_none(open_page):
    page = open_page("tokens", text="Unbelievably", token=0)
    (piece,) = show_work(MINI, "Unbelievably")
    merges = page.get_by_test_id("merges")
    last = len(piece.merges)
    ranks = read(page, "rank", "[Number(one.dataset.rank), one.dataset.chosen]")
    assert [rank for rank, chosen in ranks if chosen == "true"] == [
        merge.rank for merge in piece.merges
    ]

    def steps_to(step):
        assert merges.get_attribute("data-step") == str(step)

    steps_to(last)
    page.get_by_test_id("merge-slider").fill("0")
    steps_to(0)
    assert (
        f"rank {piece.merges[0].rank} is the lowest"
        in page.get_by_test_id("merge-says").inner_text()
    )
    assert page.locator("[data-testid=stage].later").count() == last
    page.get_by_test_id("merge-on").click()
    steps_to(1)
    page.get_by_test_id("merge-back").click()
    assert page.get_by_test_id("merge-back").is_disabled()
    page.locator(by("stage", stage=last)).click()
    steps_to(last)
    assert page.get_by_test_id("merge-on").is_disabled()
    page.get_by_test_id("merge-play").click()
    steps_to(0)
    page.get_by_test_id("merge-play").click()
    assert page.get_by_test_id("merge-play").inner_text() == "Play"

    text = "One.<|endoftext|>Two."
    page.goto(
        f"{page.url.partition('?')[0]}?{urlencode({'text': text, 'special': 'on', 'token': 2})}"
    )
    settled(page)
    assert cards(page) == expected_cards(MINI, text, special=True)
    assert "is a special token" in page.get_by_test_id("merge-says").inner_text()


def test_five_tokenizers_side_by_side(open_page):
    page = open_page("tokens", text=TEXT)

    def rows():
        row = "[Number(one.dataset.count), Number(one.dataset.unknown), ids(one)]"
        ids = "(one) => [...one.querySelectorAll('.token')].map((token) => token.dataset.id)"
        return dict(
            read(page, "tokenizer-row", f"[one.dataset.tokenizer, ((ids) => {row})({ids})]")
        )

    found = rows()
    assert list(found) == ["mini", "gpt2", "words", "characters", "bytes"]
    truth = {"mini": encode(MINI, TEXT), "gpt2": encode(GPT2, TEXT), "bytes": TEXT.encode()}
    for name, ids in truth.items():
        assert found[name] == [len(ids), 0, [str(id) for id in ids]]
    assert found["characters"][0] == len(TEXT) and found["words"][1] > 0
    assert found["characters"][1] == found["characters"][2].count("none") > 0
    press(page.get_by_text("this prompt", exact=True))
    found = rows()
    assert found["words"][1] == found["characters"][1] == 0
    assert found["characters"][2] == [str(sorted(set(TEXT)).index(character)) for character in TEXT]
    assert "tok_fit=this+prompt" in page.url
