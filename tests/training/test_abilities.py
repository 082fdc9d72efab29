"""Head scores and copying against plain loops."""

import numpy as np
import pytest
import torch

from gptviz.loading import ASSETS
from gptviz.training.abilities import copying_losses, footprint, head_scores, repeated_tokens, samples


def test_repeated_tokens_are_random_ordinary_and_twice_the_same(lm):
    ids = repeated_tokens(lm, 2000, seed=0)
    assert len(ids) == 4000 and ids[:2000] == ids[2000:]
    assert min(ids) >= 0 and max(ids) < lm.config.vocab_size - 1  # never <|endoftext|>
    # 2000 draws from 8191: about 1774 different ones, standard deviation 14
    assert 1700 < len(set(ids)) < 1850
    assert ids == repeated_tokens(lm, 2000, seed=0) != repeated_tokens(lm, 2000, seed=1)


def test_head_scores_are_means_over_periods_and_seeds(lm):
    scores = head_scores(lm, periods=(5, 9), seeds=(0, 1))
    heads = [(score.block, score.head) for score in scores.itertuples()]
    assert heads == [(b, h) for b in range(2) for h in range(4)]
    chosen = scores.iloc[6]  # block 1, head 2
    previous, induction = [], []
    for period in (5, 9):
        for seed in (0, 1):
            attn = lm.trace(repeated_tokens(lm, period, seed))["attn", 1][2].numpy()
            previous.append(np.mean([attn[q, q - 1] for q in range(1, 2 * period)]))
            induction.append(np.mean([attn[q, q - period + 1] for q in range(period, 2 * period)]))
    assert chosen.previous_token == pytest.approx(np.mean(previous), abs=1e-6)
    assert chosen.induction == pytest.approx(np.mean(induction), abs=1e-6)


def test_copying_loss_of_each_half(lm):
    loss = copying_losses(lm, periods=(6,), seeds=(3,)).iloc[0]
    ids = torch.tensor([repeated_tokens(lm, 6, 3)])
    with torch.no_grad():
        rows = torch.log_softmax(lm.model(ids)[0], dim=-1)
    nats = [-rows[i - 1, ids[0, i]].item() for i in range(1, 12)]  # of tokens 1 to 11
    assert loss.first_half == pytest.approx(np.mean(nats[:5]), rel=1e-4)  # tokens 1 to 5
    assert loss.second_half == pytest.approx(np.mean(nats[5:]), rel=1e-4)  # tokens 6 to 11
    assert loss["ratio"] == loss.second_half / loss.first_half
    with pytest.raises(ValueError, match=r"give lm\.plain"):
        copying_losses(lm.edited("z.0.0=zero"))


def test_samples_are_the_prompt_continued_and_the_same_again(lm):
    first = samples(lm, "Once upon a time", tokens=5, seeds=(1, 2))
    assert [sample["seed"] for sample in first] == [1, 2]
    assert all(sample["text"].startswith("Once upon a time") for sample in first)
    assert first[0]["text"] != first[1]["text"]
    assert first == samples(lm, "Once upon a time", tokens=5, seeds=(1, 2))


def test_footprint_counts_bytes_and_parameters(mini):
    folder = ASSETS / "mini"
    size = footprint(folder)
    assert size["bytes"] == sum(len(path.read_bytes()) for path in folder.iterdir())
    config = mini.config
    per_block = 12 * config.emb_dim**2 + 10 * config.emb_dim  # 4 + 8 matrices; biases 1 + 4 + 1, norms 2 x 2
    tables = (config.vocab_size + config.context_length) * config.emb_dim
    assert size["parameters"] == config.n_layers * per_block + tables + 2 * config.emb_dim
    assert size["load_seconds"] > 0
