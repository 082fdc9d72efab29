"""What cannot be asked of the analyses is answered with a sentence, which says what there is."""

from functools import partial

import numpy as np
import pytest
import torch

from gptviz.analysis import (
    alignment,
    attention,
    attribution,
    circuit,
    circuit_search,
    compare,
    decoding_cost,
    embeddings,
    feed_forward,
    flow,
    head_formulas,
    head_scores,
    head_trial,
    knock_out,
    lens,
    logit_attribution,
    logit_lens,
    loss,
    next_token,
    norms,
    patching,
    paths,
    repetition,
    source_tokens,
)
from gptviz.analysis.surgery import Operation, surgery
from tests.analysis.written_out import IDS, OTHER
from tests.conftest import random_lm

UNEQUAL = [IDS, IDS[1:]]
LM = random_lm()
T = LM.trace(IDS)
MODEL = LM.model
GPT2 = LM.config
EYE = torch.eye(3)
NORM = norms.norms_of(MODEL)[0]
STEPS = norms.norm_steps(NORM, np.zeros(32))
PARTS = embeddings.embedding_rows(LM, T)
PATCHED = partial(patching, LM, IDS, OTHER)
KEPT = logit_attribution.sites(LM.config)
EDITED = LM.trace(IDS, keep=[*KEPT, "q", "k", "v"], edits=["z.0=mean"])
DEEP = random_lm(n_layers=3).trace(IDS)
PAIRS = compare.align(T.tokens, DEEP.tokens, one_text=True)
KEYS = head_formulas.role_keys([1, 2, 3], [False] * 3)

REFUSED = [
    (lambda: knock_out(LM, IDS, 8192), "target is 8192; the ids go from 0 to 8191"),
    (lambda: knock_out(LM, IDS, (1, 2, 3)), "give a token, or a pair"),
    (lambda: knock_out(LM, IDS, (5, 5)), "target is twice .*: give two tokens, or one"),
    (lambda: knock_out(LM, IDS, ""), "target is the empty text"),
    (lambda: knock_out(LM, IDS, "two words"), "not one token of this model but "),
    (
        lambda: knock_out(LM, IDS, 1, "uniform"),
        "baseline is 'uniform'; it must be one of zero, mean, sample",
    ),
    (lambda: knock_out(LM, IDS, 1, position=9), "no position 9"),
    (lambda: knock_out(LM, "", 1), "the text is empty"),
    (lambda: knock_out(LM, IDS, [7]), "target is .7.; a list is for a list of texts"),
    (lambda: patching(LM, IDS, OTHER, [7]), "target is .7.; a list is for a list of texts"),
    (lambda: knock_out(LM, [IDS, IDS], [7]), "2 texts and 1 targets: give"),
    (lambda: knock_out(LM, [IDS, []], 7), "text 1: the text is empty"),
    (lambda: knock_out(LM, ["one", "two"], [7, 99999]), "text 1: target is 99999"),
    (lambda: PATCHED(sites="tok_emb"), "sites has 'tok_emb'; they are resid_pre, attn_out"),
    (lambda: PATCHED(sites=[]), "sites has 'nothing'"),
    (
        lambda: PATCHED(direction="both"),
        "direction is 'both'; it must be one of denoising, noising",
    ),
    (lambda: PATCHED(5), "target is 5; give a pair"),
    (lambda: PATCHED((5, 5)), "the difference 0: give two tokens"),
    (lambda: PATCHED((5, 8192)), "target is 8192"),
    (lambda: PATCHED(("mill", 5)), "but 2: m, ill; ' mill' is one"),
    (lambda: PATCHED(position=1.5), "no position 1.5; they go from 0 to 6"),
    (lambda: PATCHED(position=9), "no position 9; they go from 0 to 6"),
    (lambda: patching(LM, IDS, OTHER[:-1]), "the corrupt one lacks .* has at position 5"),
    (
        lambda: patching(LM, IDS[1:], OTHER),
        "the clean one lacks .*, which the corrupt one has at position 0",
    ),
    (lambda: patching(LM, IDS, IDS), "both texts give .*: choose two tokens"),
    (
        lambda: patching(LM, IDS, IDS, (5, 6)),
        "same difference .* nothing that a patch could bring back",
    ),
    (lambda: patching(LM, "", ""), "both texts are empty"),
    (lambda: patching(LM, [IDS, IDS], [OTHER]), "give corrupt as one, with a text for each"),
    (lambda: patching(LM, UNEQUAL, UNEQUAL), "text 0 has 7 tokens and text 1 has 6: position by"),
    (
        lambda: patching(LM, UNEQUAL, UNEQUAL[::-1], (7, 8), "z"),
        "text 0: the clean text has 7 tokens",
    ),
    (lambda: circuit(LM, IDS, 7, within=0), "within is 0; it is the share of"),
    (lambda: circuit(LM, IDS, 7, within=float("nan")), "within is nan"),
    (lambda: circuit(LM, IDS, 7, within="all"), "within is 'all'"),
    (lambda: circuit(LM, IDS, 7, way="best"), "way is 'best'; it must be one of remove, add"),
    (lambda: circuit(LM, IDS, 7, "uniform"), "baseline is 'uniform'"),
    (lambda: circuit(LM, IDS, 7, position=9), "no position 9"),
    (lambda: circuit_search.parse("4", LM), "'4' is no head; a circuit is written block.head"),
    (lambda: circuit_search.parse("0.0++1.1", LM), "'' is no head"),
    (lambda: circuit_search.parse("0.0+2.0", LM), "there is no block 2; they go from 0 to 1"),
    (lambda: circuit_search.parse("0.9", LM), "there is no head 9; they go from 0 to 3"),
    (lambda: circuit_search.parse("-1.0", LM), "'-1.0' is no head"),
    (lambda: circuit_search.parse("٣.0", LM), "is no head"),
    (lambda: alignment.missing([1, 2], [1]), "give the shorter first"),
    (lambda: attention.steps(LM, T, 0, 4), "there is no head 4; they go from 0 to 3"),
    (lambda: attention.steps(LM, T, 2, 0), "no block 2; they go from 0 to 1"),
    (lambda: attention.cell(LM, T, 0, 0, 0, 99), "no key 99; they go from 0 to 6"),
    (lambda: compare.heads_apart(T, DEEP, PAIRS), "n_heads = 4 and .* 3.* of one shape only"),
    (lambda: compare.streams_apart(T, DEEP, PAIRS), "emb_dim = 32 and .* 3.* of one shape only"),
    (lambda: decoding_cost.work(GPT2, 0), "new is 0"),
    (lambda: decoding_cost.work(GPT2, 1, -1), "past -1"),
    (lambda: decoding_cost.work(GPT2, 2, 0, 3), "logits 3"),
    (lambda: decoding_cost.work(GPT2, 2, 0, -1), "logits -1"),
    (lambda: decoding_cost.steps(GPT2, 0, 3), "prompt is 0"),
    (lambda: embeddings.nearest_tokens(EYE, 3), "no token id 3; they go from 0 to 2"),
    (lambda: embeddings.nearest_tokens(EYE, 0, measure="euclid"), "'euclid'"),
    (lambda: embeddings.nearest_tokens(EYE, 0, k=0), "k is 0"),
    (lambda: embeddings.addition(PARTS, 99, 0), "position 99"),
    (lambda: embeddings.addition(PARTS, 0, -1), "dimension -1"),
    (lambda: embeddings.shared_scale(np.array([])), "no values"),
    (lambda: embeddings.shared_scale(np.ones(3), 0), "share is 0"),
    (lambda: feed_forward.readings(LM, T, 0, [5], [1.0], k=0), "k is 0; it must be"),
    (lambda: feed_forward.peaks_of(torch.zeros(1, 8)), "one token"),
    (lambda: flow.contribution_graph(LM, T, 7), "no position 7"),
    (lambda: flow.token_flow(LM, T, -8), "no position -8"),
    (lambda: flow.contribution_graph(LM, T, 0, 1.0), "threshold is 1"),
    (lambda: head_formulas.shares(torch.ones(4, 4), KEYS), r"\(3, 3, 7\); weights of 4 tokens"),
    (
        lambda: head_scores.block_scores(torch.ones(1, 4, 4), KEYS),
        r"\(3, 3, 7\).*weights of 4 tokens",
    ),
    (lambda: head_formulas.previous_token_score(torch.ones(1, 1)), "at least 2 tokens"),
    (lambda: head_formulas.previous_token_score(torch.ones(3, 4)), r"\(3, 4\)"),
    (
        lambda: head_formulas.induction_score(torch.ones(4, 4), 4),
        "period is 4; .* must be from 2 to 3",
    ),
    (lambda: head_trial.trial(LM, 0, 0, "mixed"), "label is 'mixed'"),
    (lambda: head_trial.trial(LM, 0, 7, "itself"), "no head 7"),
    (
        lambda: head_trial.trial(random_lm(context_length=8), 0, 0, "itself"),
        "8 tokens; a trial needs 16:",
    ),
    (lambda: logit_lens(T, MODEL, 1.0), "there is no position"),
    (lambda: logit_lens(LM.trace(IDS, keep=["embed"]), MODEL), "was not kept"),
    (lambda: logit_lens(T, random_lm(1).model), "made by another model"),
    (lambda: lens.cells(LM, T, 3, 2), "there are no positions"),
    (lambda: lens.cells(LM, T, 0, 8), "there are no positions"),
    (lambda: lens.cells(LM, T, -1, 2), "there are no positions"),
    (lambda: lens.followed(torch.zeros(1, 8192), [8192]), "there is no token 8192"),
    (lambda: lens.reading(torch.zeros(2, 3), k=0), "k is 0"),
    (lambda: attribution(T, MODEL, 8192), "token is 8192; the ids go from 0 to 8191"),
    (lambda: attribution(T, MODEL, 3, -1), "against is -1"),
    (
        lambda: attribution(T, MODEL, 3, "no token"),
        "against is 'no token', not one token of this model",
    ),
    (lambda: attribution(T, MODEL, 3, position=7), "no position 7; they go from 0 to 6"),
    (
        lambda: source_tokens(LM.trace(IDS, keep=[*KEPT, "attn"]), MODEL, 3),
        r"'v', 0.* was not kept",
    ),
    (lambda: source_tokens(LM.trace(IDS, keep=[*KEPT, "v"]), MODEL, 3), r"'q', 0.* was not kept"),
    (lambda: source_tokens(EDITED, MODEL, 3), "edited pass needs attn of block 0"),
    (
        lambda: loss.loss_steps(torch.zeros(1, 4), torch.tensor([8])),
        "8 is no id of a vocabulary of 4",
    ),
    (
        lambda: loss.loss_steps(torch.zeros(2, 4), torch.zeros(3).long()),
        r"\(2, 4\) and targets \(3,\)",
    ),
    (lambda: loss.uniform_loss(0), "0 tokens"),
    (lambda: next_token.candidates(torch.zeros(3), k=0), "k is 0"),
    (lambda: norms.find_norm(MODEL, "norm3"), r"'norm3'; this model has block 0 · norm1, .*final"),
    (lambda: T.norm_statistics().grid("spread"), r"'spread'; they have mean, variance"),
    (lambda: norms.norm_grids(LM, T, "median"), "'median'"),
    (lambda: norms.norm_steps(NORM, np.zeros(3)), r"shape \(3,\)"),
    (lambda: STEPS.stage("during"), "'during'"),
    (lambda: norms.arithmetic(STEPS, 32), "no dimension 32; they go from 0 to 31"),
    (lambda: norms.histogram(np.array([])), "no values"),
    (lambda: paths.paths(LM, T, 10**6), "token is 1000000"),
    (lambda: paths.paths(LM, T, 5, position=7), "no position 7"),
    (lambda: repetition.repeated([1, 2], 0), "n is 0"),
    (lambda: alignment.differences([b"a", b"b"], [b"a", b"c"]), "same text"),
    (lambda: Operation("mend", 0), "mend"),
    (lambda: Operation("delete", 0, other=1), "other = 1"),
    (lambda: Operation("swap", 0), "other = None"),
    (lambda: Operation("freeze", 0, other=1), "token = None"),
    (lambda: Operation("delete", 0, token=3), "token = 3"),
    (lambda: surgery(LM, IDS, Operation("delete", 6)), "position 6 is not cached"),
    (lambda: surgery(LM, IDS, Operation("swap", 0, other=-1)), "position -1"),
    (lambda: surgery(LM, IDS[:1], Operation("delete", 0)), "one token"),
    (lambda: surgery(LM, IDS, Operation("freeze", 1, 0, 99999)), "token id 99999"),
    (
        lambda: surgery(LM.edited("z.0=mean"), IDS, Operation("swap values", 2, 5)),
        r"give lm\.plain",
    ),
    (lambda: surgery(LM.edited("attn.1.0=first"), IDS, Operation("delete", 2)), r"give lm\.plain"),
    (lambda: surgery(LM.edited("attn.*=hide3"), IDS, Operation("swap", 2, 5)), r"give lm\.plain"),
    (lambda: surgery(LM.edited("k.0@-1=zero"), IDS, Operation("swap", 2, 5)), r"give lm\.plain"),
]


@pytest.mark.parametrize(("ask", "says"), REFUSED, ids=[says for _, says in REFUSED])
def test_what_cannot_be_asked_is_a_sentence(ask, says):
    with pytest.raises(ValueError, match=says):
        ask()
