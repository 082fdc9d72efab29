"""The Tokens page in Chromium: the values behind the pictures are tiktoken's."""

from urllib.parse import urlencode

from gptviz.tokenizer import encode, get_encoding, token_bytes
from gptviz.tokenizer.steps import show_work
from tests.browser.conftest import press

MINI, GPT2 = get_encoding("mini"), get_encoding("gpt2")
TEXT = "Unbelievably, the café in 東京\nsells 🍣."


def cards(page):
    page.get_by_test_id("token-card").first.wait_for()
    return page.get_by_test_id("token-card").evaluate_all(
        "all => all.map(c => [Number(c.dataset.position), Number(c.dataset.id), c.dataset.bytes])"
    )


def expected_cards(encoding, text, special=False):
    ids = encode(encoding, text, special)
    return [[position, id, token_bytes(encoding, id).hex(" ")] for position, id in enumerate(ids)]


def final_ids(page):
    page.get_by_test_id("merge-id").first.wait_for()
    return page.get_by_test_id("merge-id").evaluate_all("all => all.map(e => Number(e.dataset.id))")


def test_cards_are_of_what_was_typed_and_a_click_shows_merges_and_selects_everywhere(open_page, type_prompt):
    page = open_page("tokens", token=0)
    for text in ("a", "\t<b>&amp;</b>  `x`", "supercalifragilistic " * 100, TEXT):
        type_prompt(page, text)
        assert cards(page) == expected_cards(MINI, text)[:256]  # the model's context
        if len(text) > 256:
            continue
        cut = page.get_by_test_id("piece").evaluate_all(
            "all => all.map(p => p.querySelectorAll('[data-testid=token-card]').length)"
        )
        assert cut == [len(piece.ids) for piece in show_work(MINI, text)]
    piece = show_work(MINI, TEXT)[0]
    for position in range(len(piece.ids)):
        press(page.locator(f"[data-testid=token-card][data-position='{position}']"))
        assert final_ids(page) == list(piece.ids)
        assert page.locator("[data-testid=merge-id].mine").get_attribute("data-position") == str(position)
        chip = page.locator("[data-testid=chip][aria-pressed=true]").first
        assert chip.get_attribute("data-position") == str(position) and f"token={position}" in page.url


def test_walking_through_the_merges_and_a_special_token_has_none(open_page, settled):
    page = open_page("tokens", text="Unbelievably", token=0)
    (piece,) = show_work(MINI, "Unbelievably")
    merges = page.get_by_test_id("merges")
    merges.wait_for()
    last = len(piece.merges)
    assert merges.get_attribute("data-steps") == merges.get_attribute("data-step") == str(last)
    chosen = page.locator("[data-testid=rank][data-chosen=true]").evaluate_all(
        "all => all.map(e => Number(e.dataset.rank))"
    )
    assert chosen == [merge.rank for merge in piece.merges]

    page.get_by_test_id("merge-slider").fill("0")
    assert merges.get_attribute("data-step") == "0"
    first = piece.merges[0]
    assert f"rank {first.rank} is the lowest" in page.get_by_test_id("merge-says").inner_text()
    assert page.locator("[data-testid=stage].later").count() == last
    page.get_by_test_id("merge-on").click()
    assert merges.get_attribute("data-step") == "1"
    page.get_by_test_id("merge-back").click()
    assert page.get_by_test_id("merge-back").is_disabled()
    page.locator(f"[data-testid=stage][data-stage='{last}']").click()
    assert merges.get_attribute("data-step") == str(last)
    assert page.get_by_test_id("merge-on").is_disabled()
    page.get_by_test_id("merge-play").click()
    assert merges.get_attribute("data-step") == "0"
    page.get_by_test_id("merge-play").click()
    assert page.get_by_test_id("merge-play").inner_text() == "Play"

    text = "One.<|endoftext|>Two."
    page.goto(f"{page.url.partition('?')[0]}?{urlencode({'text': text, 'special': 'on', 'token': 2})}")
    settled(page)
    assert cards(page) == expected_cards(MINI, text, special=True)
    assert "is a special token" in page.get_by_test_id("merge-says").inner_text()


def rows(page):
    page.get_by_test_id("tokenizer-row").first.wait_for()
    found = page.get_by_test_id("tokenizer-row").evaluate_all(
        """all => all.map(r => [r.dataset.tokenizer, [Number(r.dataset.count), Number(r.dataset.unknown),
                                [...r.querySelectorAll('.token')].map(t => t.dataset.id)]])"""
    )
    return dict(found)


def test_five_tokenizers_side_by_side(open_page, settled):
    page = open_page("tokens", text=TEXT)
    found = rows(page)
    assert list(found) == ["mini", "gpt2", "words", "characters", "bytes"]
    for encoding in (MINI, GPT2):
        ids = encode(encoding, TEXT)
        assert found[encoding.name] == [len(ids), 0, [str(id) for id in ids]]
    assert found["bytes"] == [len(TEXT.encode()), 0, [str(byte) for byte in TEXT.encode()]]
    assert found["characters"][0] == len(TEXT)
    assert found["characters"][1] == found["characters"][2].count("none") > 0
    assert found["words"][1] > 0

    press(page.get_by_text("this prompt", exact=True))
    found = rows(page)
    assert found["words"][1] == found["characters"][1] == 0
    assert found["characters"][2] == [str(sorted(set(TEXT)).index(character)) for character in TEXT]
    assert "tok_fit=this+prompt" in page.url
    page.reload()
    settled(page)
    assert rows(page) == found
