"""Claims: an honest link holds wherever it is opened, and whatever is changed in it is found out."""

import json
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings, strategies as st

from gptviz import cli
from gptviz.teach import claims
from gptviz.teach.claims import NAMES, ClaimError, claim, verify

TEXT = "The little birds sang beside the red mill. The little birds"
ARGUMENTS = {
    "chance": {"token": " mill"},
    "nucleus": {"share": 0.5},
    "with_top_k": {"k": 3},
    "at_temperature": {"temperature": 0.7},
    "looked_at": {"block": 1, "head": 2},
    "to_later": {"block": 0, "head": 1},
    "head_with": {"role": "previous"},
    "heads_with": {"role": "previous"},
    "role_here": {"block": 0, "head": 1},
}
NUMBERS = [(name, ARGUMENTS.get(name, {})) for name in NAMES if name != "head_with"]
HUNDRED = settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])


def parts(link):
    return {name: values[0] for name, values in parse_qs(urlsplit(link).query).items()}


def linked(there):
    return f"http://localhost:8501/next_token?{urlencode(there)}"


@pytest.fixture(scope="module")
def honest(lm):
    return parts(claim(lm.edited("z.1.2=zero"), TEXT, *NUMBERS[:8]))


def test_everything_that_can_be_claimed_holds_with_other_threads_and_kernels(mini, monkeypatch):
    """Said of 200 tokens: what is added up in another order differs most in a long text."""
    text = "Seven green parrots sang behind the old mill. " * 20
    threads = torch.get_num_threads()
    link = claim(
        mini.edited("z.4.3=zero"), text[:900], *NUMBERS, ("head_with", ARGUMENTS["head_with"])
    )
    try:
        for count, kernels in ((1, "on"), (3, "on"), (threads, "off")):
            torch.set_num_threads(count)
            monkeypatch.setenv("GPTVIZ_KERNELS", kernels)
            found = verify(link)
            assert len(found) == len(NAMES) and all(one.holds for one in found), [*map(str, found)]
    finally:
        torch.set_num_threads(threads)


@HUNDRED
@given(st.data())
def test_a_link_that_was_changed_is_found_out(lm, honest, data):
    """A letter here or there, in the claim, the text, the place or the change."""
    name = data.draw(st.sampled_from(["claims", "text", "token", "edits"]))
    at = data.draw(st.integers(0, len(honest[name]) - 1))
    put = data.draw(st.text("abcXYZ019-_ .é🙂", max_size=2))
    changed = honest[name][:at] + put + honest[name][at + 1 :]
    assume(changed != honest[name])
    try:
        found = verify(linked(honest | {name: changed}), lm)
    except ValueError:
        return
    # the same change in other words, 03 for 3, is the same claim
    assert name == "edits" and all(one.holds for one in found)


@HUNDRED
@given(st.data())
def test_a_wrong_number_is_contradicted_though_its_hashes_are_right(lm, honest, data):
    content = claims._unpacked(honest["claims"])
    del content["whole"]
    row = data.draw(st.sampled_from(content["numbers"]))
    if isinstance(row[2], str):
        row[2] += "."
    else:
        by = data.draw(st.integers(1, 1000)) * data.draw(st.sampled_from([-1, 1]))
        row[2] += by if isinstance(row[2], int) else 1e-3 * by * max(1.0, abs(row[2]))
    ids = lm.encode(TEXT)
    whole = claims._whole(content, lm.edited("z.1.2=zero"), ids, len(ids) - 1)
    forged = claims._packed(content | {"whole": whole})
    wrong = [one for one in verify(linked(honest | {"claims": forged}), lm) if not one.holds]
    assert [(one.name, one.claimed) for one in wrong] == [(row[0], row[2])]


def test_a_link_that_names_no_token_is_about_the_last(lm, honest):
    found = verify(linked({name: said for name, said in honest.items() if name != "token"}), lm)
    assert found and all(one.holds for one in found)


def test_another_model_and_what_nobody_may_ask_are_refused(lm, mini):
    link = claim(lm, TEXT, "next_word")
    with pytest.raises(ClaimError, match="about another model than mini"):
        verify(link, mini)
    with pytest.raises(ClaimError, match="makes no claim"):
        verify("http://localhost:8501/attention?text=one", mini)
    # which takes as long as it likes
    with pytest.raises(ClaimError, match="no number 'written_or_read' to claim"):
        claim(lm, TEXT, ("written_or_read", {"tokens": 10**6}))
    for damaged in ("", "e30", "eyJtb2RlbCI6MX0", "[" * 9000, json.dumps({"numbers": 3})):
        with pytest.raises(ClaimError, match="cannot be read"):
            verify(linked(parts(link) | {"claims": damaged or "-"}), lm)


@pytest.mark.parametrize(
    "named",
    [
        {"model": "{folder}/model.pt"},
        {"model": "path:{folder}/model.pt"},
        {"model": "somebody/model"},
        {"model": "upload:1"},
        {"model": ""},
        {"tokenizer": "{folder}/tokenizer.json"},
    ],
)
def test_a_link_alone_opens_no_file_and_fetches_no_repository(mini, tmp_path, monkeypatch, named):
    asked = []
    monkeypatch.setattr(
        claims, "load", lambda name, **options: asked.append((name, options)) or mini
    )
    given = {name: value.format(folder=tmp_path) for name, value in named.items()}
    link = linked(parts(claim(mini, TEXT, "next_word")) | given)
    if "model" in given:
        with pytest.raises(
            ClaimError, match=r"no model of the catalogue.*verify LINK --model MODEL"
        ):
            verify(link)
        assert not asked
        assert all(one.holds for one in verify(link, mini))
    else:
        assert verify(link) and asked == [("mini", {"dtype": "float32"})]


def test_on_the_command_line(mini, capsys, tmp_path):
    link = claim(mini.edited("z.4.3=zero"), TEXT, "next_word", ("chance", {"token": " sang"}))
    (tmp_path / "claim.txt").write_text(link + "\n")
    assert cli.main(["verify", str(tmp_path / "claim.txt")]) == 0
    assert capsys.readouterr().out.count("holds  ") == 2
    assert cli.main(["verify", link.replace("z.4.3", "z.4.4")]) == 1
    assert "not about this text, token and change" in capsys.readouterr().err
