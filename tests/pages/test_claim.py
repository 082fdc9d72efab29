"""A page as a claim: its link says whether its numbers hold, in any state of the page that opens it."""

from urllib.parse import urlencode

from gptviz.teach import claims
from gptviz.teach.claims import verify
from tests.specs import opened


def link_of(at):
    """The address after a click on the button in *Details*, as its parameters."""
    opened(at, "claim_offer").button("claim_make").click().run()
    assert len(at.success) == 1
    link = dict(at.query_params)
    verify(f"http://localhost/attention?{urlencode(link)}")
    return link


def test_a_page_is_claimed_and_a_link_says_what_holds(run_page, mini):
    link = link_of(run_page("attention", block=3, head=1, edits="nonsense,z.4.3=zero"))
    assert link["edits"] == "z.4.3=zero"  # what was made of them
    at = run_page("attention", **link)
    (said,) = at.success
    assert "claims 4 numbers. Computed again just now: 4 of 4 hold" in said.value
    # a wrong number in it, with hashes that fit
    content = claims._unpacked(link["claims"])
    del content["whole"]
    content["numbers"][1][2] += 1.0
    lm = mini.edited("z.4.3=zero")
    ids = lm.encode(claims.UNSAID_TEXT)
    whole = claims._whole(content, lm, ids, int(link["token"]))
    wrong = run_page("attention", **link | {"claims": claims._packed(content | {"whole": whole})})
    (said,) = wrong.error
    assert "3 of 4 hold" in said.value and said.value.count("**wrong**") == 1
    # another change than the claim's, by hand or in the link
    other = run_page("loss", **link | {"edits": "z.4.4=zero"})
    (said,) = other.warning
    assert "not about this text" in said.value
    other.button("claim_forget").click().run()
    assert not other.warning and not other.query_params["claims"]
    # and the default text, which an address leaves out
    plain = run_page("loss", **link_of(run_page("next_token")))
    assert plain.success
    assert len(verify(f"http://localhost/loss?{urlencode(dict(plain.query_params))}")) == 3
