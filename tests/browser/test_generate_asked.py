"""What is asked of a written text in Chromium: clicks on tokens and heads, and the cache's two ways."""

import numpy as np

from tests.browser.plots import values

TEXT = "The little birds sang beside the red mill. The little birds sang beside the red"


def ask(page, settled, question):
    page.locator(".st-key-ask").get_by_text(question, exact=True).click()
    settled(page)


def test_looked_surgery_and_what_the_cache_saves(open_page, settled, mini):
    page = open_page("generate", text=TEXT, written=4, temperature=0, block=5, head=0)
    ask(page, settled, "What it looked at")
    prompt = mini.encode(TEXT)
    ids = prompt + [step.id for step in mini.generate(prompt, 3, temperature=0)]
    attn = mini.trace(ids, keep=["attn"])
    chips = page.locator(".st-key-generate_looked [data-testid=chip]")
    shown = chips.evaluate_all("all => all.map(one => Number(one.dataset.weight))")
    assert np.allclose(shown, attn["attn", 5][0, -1], atol=1e-4)
    chips.nth(2).click()
    page.wait_for_url("**looked=2*")
    settled(page)
    drawn = values(page, "generate_heads", 0, "z")
    assert np.allclose(drawn[:, -1].reshape(6, 8)[3], attn["attn", 3][:, -1, 2], atol=1e-4)
    ask(page, settled, "Surgery on the cache")
    page.locator(".st-key-generate_cached [data-testid=chip]").nth(10).click()
    page.wait_for_url("**surgery_at=10*")
    settled(page)
    assert values(page, "generate_surgery", 0, "x").shape == values(page, "generate_surgery", 1, "x").shape
    ask(page, settled, "What the cache saves")
    page.get_by_role("button", name="Write it again").click()
    settled(page)
    times = values(page, "generate_times", 1, "y")
    assert len(times) == 4 and (times > 0).all()
    assert "ask=cache" in page.url
