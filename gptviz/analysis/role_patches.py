"""Activation patching by role: one map of block and role over many sentences with two names, whatever their lengths.

A position in the middle of one sentence is no place of another one. What is the same place in all of them is what a
token does there: IO, the name that is the answer; S1 and S2, the two mentions of the other name; S1+1, the token
behind S1; END, the last one, where the answer is read. (I for indirect object, S for subject: Wang et al.) At each
of these, and before each block, the value of the one text is put in the place of the other's at the same position, as
in `gptviz.analysis.activation_patching`. The other positions have no role, and are left out.

Wang et al., Interpretability in the Wild: a Circuit for Indirect Object Identification in GPT-2 small, 2022.
"""

import pandas as pd

from gptviz.analysis.activation_patching import (
    DIRECTIONS,
    Target,
    averaged_patches,
    kept_for,
    logits_of_patches,
    passes_of,
    with_effects,
)
from gptviz.analysis.name_places import places_of
from gptviz.analysis.names import groups_of
from gptviz.analysis.patches import POSITION_SITES, Patch
from gptviz.analysis.prompts import Texts, is_many, of_one_text, over
from gptviz.engine.given import Text, ids_of
from gptviz.engine.index import one_of
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.progress import Progress, ignore_progress
from gptviz.engine.undisturbed import undisturbed
from gptviz.tokenizer.one import one_token

# a role -> its place in the story of two names
ROLES = {"IO": "answer", "S1": "first", "S1+1": "after", "S2": "second", "END": "end"}


@undisturbed
def role_patching(
    lm: LanguageModel,
    clean: Texts,
    corrupt: Texts,
    target: Target | list[Target],
    site: str = "resid_pre",
    direction: str = "denoising",
    progress: Progress = ignore_progress,
) -> pd.DataFrame:
    """Patch each role's position of a sentence with two names, block by block, and measure the difference of logits.

    Args:
        clean, corrupt: two texts of as many tokens, or two lists of them; the pairs may differ in length.
        target: the name that is the answer of the clean text, and the other one: a pair of tokens, by id or text
            (" Mary", with its space), for all texts, or a list of one for each.
        site: "resid_pre", "attn_out" or "mlp_out".
        direction: "denoising" (clean values into the corrupt pass) or "noising".
        progress: `progress(done, of)` is called after every batch, without a lock: what it raises stops the work.

    Columns, with a row for each block and each of `ROLES`: site, block, role, and logit, metric, effect and change as
    `patching` has them, the rows of which these are. Of one pair position says where the role stands; of lists the
    numbers are means, with logit_se, change_se, effect_se and n, as those of `patching`.

    Raises ValueError as `patching` does, and unless the clean text has the answer's name once and the other one
    twice, a token each.
    """
    one_of("site", site, POSITION_SITES)
    one_of("direction", direction, DIRECTIONS)
    if is_many(clean):
        if not is_many(corrupt) or len(clean) != len(corrupt):
            raise ValueError(
                "clean is a list of texts: give corrupt as one, with a text for each of them"
            )
        pairs = list(zip(clean, corrupt, strict=True))
        found = over(_of_pair, lm, pairs, target, progress, site=site, direction=direction)
        tables = [table.drop(columns="position") for table, _ in found]
        distances = [distance for _, distance in found]
        return averaged_patches(tables, distances, groups=groups_of(lm, clean, target))
    aim = of_one_text(target, one="the pair of both names")
    return _of_pair(lm, (clean, corrupt), aim, progress, site=site, direction=direction)[0]


def roles_of(lm: LanguageModel, text: Text, target: Target) -> dict[str, int]:
    """The position of each of `ROLES` in a text with two names, up to its last token.

    `target` is the name that is the answer, and the other one. Raises ValueError for anything but two tokens, and
    unless the first of them stands there once and the other one twice.
    """
    if not isinstance(target, tuple) or len(target) != 2:
        raise ValueError(f"target is {target!r}; give a pair: the answer's name, and the other one")
    answer, instead = (
        one_token(lm.tokenizer, lm.config.vocab_size, name, "target") for name in target
    )
    places = places_of(lm, ids_of(lm, text), answer, instead)
    return {role: places[place][0] for role, place in ROLES.items()}


def _of_pair(
    lm: LanguageModel,
    clean_and_corrupt: tuple[Text, Text],
    target: Target,
    progress: Progress,
    *,
    site: str,
    direction: str,
) -> tuple[pd.DataFrame, float]:
    """`role_patching` of one pair of texts, and how far apart their differences are."""
    roles = roles_of(lm, clean_and_corrupt[0], target)
    passes = passes_of(lm, clean_and_corrupt, target, -1, direction, kept_for(lm, (site,)))
    rows = [
        (role, Patch(site, block, position=position))
        for block in range(lm.config.n_layers)
        for role, position in roles.items()
    ]
    patches = [patch for _, patch in rows]
    table = pd.DataFrame(
        {
            "site": site,
            "block": [patch.block for patch in patches],
            "role": [role for role, _ in rows],
            "position": [patch.position for patch in patches],
            "logit": logits_of_patches(lm, passes, patches, progress),
        }
    )
    return with_effects(table, passes), passes.ends.distance
