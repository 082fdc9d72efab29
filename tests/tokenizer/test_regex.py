"""The cuts of the regex, and the rule that made each."""

import pytest
from hypothesis import given, strategies as st

from gptviz.tokenizer import GPT2_PATTERN
from gptviz.tokenizer.patterns import PATTERNS
from gptviz.tokenizer.regex import GPT2_RULES, RULES, alternatives, cut

BLANKS = " \t\n\r\u00a0\u3000"


def test_gpt2s_rules_are_the_alternatives_of_its_regex():
    assert alternatives(GPT2_PATTERN) == list(GPT2_RULES)
    assert "|".join(GPT2_RULES) == GPT2_PATTERN


@pytest.mark.parametrize(
    ("pattern", "rules"),
    [
        ("", [""]),
        ("a|b", ["a", "b"]),
        (r"a\|b|[|]|(c|d(e|f))|[\]|]", [r"a\|b", "[|]", "(c|d(e|f))", r"[\]|]"]),
        (r"[(]|b", ["[(]", "b"]),
        (r"\(|b", [r"\(", "b"]),
    ],
)
def test_alternatives(pattern, rules):
    assert alternatives(pattern) == rules
    assert "|".join(alternatives(pattern)) == pattern


def test_which_rule_cut_what():
    _, pieces, rules = zip(*cut(GPT2_PATTERN, "It's  2 cats,\n\nsaid\n "), strict=True)
    assert pieces == ("It", "'s", " ", " 2", " cats", ",", "\n", "\n", "said", "\n ")
    assert [list(GPT2_RULES).index(rule) for rule in rules] == [1, 0, 5, 2, 1, 3, 5, 6, 1, 4]


@given(text=st.text(st.sampled_from([*BLANKS, *"a1!'s你\u0897"]), max_size=40))
def test_the_rules_mean_what_they_say(text):
    pieces = list(cut(GPT2_PATTERN, text))
    assert "".join(piece for _, piece, _ in pieces) == text
    rules = list(GPT2_RULES)
    for start, piece, rule in pieces:
        after = text[start + len(piece) :]
        if rule == rules[0]:
            assert piece in ("'s",)
        elif rule in rules[1:4]:
            body = piece.removeprefix(" ")
            assert body and not any(character in BLANKS for character in body)
            kinds = {1: str.isalpha, 2: str.isnumeric}
            number = rules.index(rule)
            assert number == 3 or all(map(kinds[number], body))
        else:
            assert all(character in BLANKS for character in piece)
            if rule == rules[4]:
                assert not after
            if rule == rules[5]:
                assert after[:1] in BLANKS
            if rule == rules[6]:
                assert len(piece) == 1 and after[:1] not in BLANKS


@pytest.mark.parametrize("name", PATTERNS)
def test_every_rule_of_a_known_regex_has_words(name):
    assert alternatives(PATTERNS[name]) == [
        rule for rule in alternatives(PATTERNS[name]) if RULES[rule]
    ]
