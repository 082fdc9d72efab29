"""What the bars are given to follow a slider that is held."""

import base64

import numpy as np
import torch

from gptviz.both import Both
from gptviz.ui.components.candidates import LARGEST_SENT, held_sliders
from gptviz.ui.components.kernel import elsewhere

SETTINGS = {"temperature": 0.7, "top_k": 5, "top_p": None}
SLIDERS = {"temperature": "heat", "top_p": "mass"}


def given(logits):
    return held_sliders(logits, SETTINGS, SLIDERS, stale="above", about="a text")


def test_the_browser_gets_every_logit_exactly():
    now, was = torch.randn(2, 700, generator=torch.Generator().manual_seed(2))
    said = given(Both(now, was))
    for name, logits in {"logits": now, "was": was}.items():
        sent = np.frombuffer(base64.b64decode(said[name]), "<f4")
        assert sent.tolist() == sorted(logits.tolist(), reverse=True)
    assert said["sliders"] == SLIDERS and said["settings"] == SETTINGS
    assert "was" not in given(Both(now))


def test_a_large_vocabulary_and_a_file_wait_for_python():
    large = given(Both(torch.zeros(LARGEST_SENT + 1)))
    with elsewhere(lambda name, data: None, "light"):
        alone = given(Both(torch.zeros(9)))
    for said in (large, alone):
        assert said["sliders"] == {} and "logits" not in said and said["about"] == "a text"
