"""The prompts that a page offers to try: those of the Overview that suit it."""

import pytest

from gptviz.ui.shell.prompt import EXAMPLES


@pytest.mark.parametrize("page", ["feed_forward", "why"])
def test_a_page_that_takes_apart_offers_what_suits_it(run_page, page):
    at = run_page(page, text="a")
    offered = [int(b.key.removeprefix("example_")) for b in at.button if str(b.key).startswith("example_")]
    assert 3 <= len(offered) < len(EXAMPLES)
    for number in (offered[0], offered[-1]):
        at.button(key=f"example_{number}").click().run()
        assert at.query_params["text"] == [*EXAMPLES.values()][number]
