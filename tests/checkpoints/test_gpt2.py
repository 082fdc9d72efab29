"""OpenAI's own GPT-2, where it is on this machine: its first weights, and what it writes."""

import pytest
import torch

import gptviz
from gptviz.checkpoints.hub import HUB_MODELS, cached_folder

pytestmark = pytest.mark.skipif(
    cached_folder(HUB_MODELS["gpt2"].repositories) is None,
    reason="GPT-2 is not in Hugging Face's cache: python -m gptviz download gpt2",
)


def test_gpt2_continues_greedily():
    lm = gptviz.load("gpt2")
    assert lm.model.tok_emb.weight[0, :3].tolist() == pytest.approx([-0.11010, -0.03927, 0.03311], abs=1e-5)
    assert sum(p.numel() for p in lm.model.parameters()) == 124_439_808
    start = lm.encode("Every effort moves you")
    ids = list(start)
    with torch.inference_mode():
        for _ in range(15):
            ids.append(int(lm.model(torch.tensor([ids]))[0, -1].argmax()))
    written = lm.decode(ids[len(start) :])
    assert written == " forward.\n\nThe first step is to understand the importance of your work"
