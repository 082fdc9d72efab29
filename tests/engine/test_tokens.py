"""What a token is called, of a text and of ids that no text has."""

from tests.conftest import random_lm


def test_tokens_carry_their_bytes(lm):
    tokens = lm.trace("naïve 😀 x").tokens
    assert b"".join(token.raw for token in tokens).decode() == "naïve 😀 x"
    assert [token.position for token in tokens] == list(range(len(tokens)))
    assert any(token.text.startswith("\\x") for token in tokens)
    assert lm.tokens([token.id for token in tokens]) == tokens


def test_an_id_without_a_token_goes_by_its_number():
    lm = random_lm(vocab_size=8192 + 64)
    trace = lm.trace([5, 8200, 8191])
    token = trace.tokens[1]
    assert (token.id, token.text, token.raw) == (8200, "<id 8200>", b"<id 8200>")
    everything = trace.next_tokens(k=lm.config.vocab_size)
    assert set(everything["token"][everything["id"] >= 8192]) == {
        f"<id {i}>" for i in range(8192, 8256)
    }
    assert lm.decode([8200, *lm.encode(" cat")]) == "<id 8200> cat"
