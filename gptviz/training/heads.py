"""What ships with the bundled model of what was measured of its heads: see `gptviz.disk_cache.SHIPPED`."""

from typing import Any, cast

from gptviz.analysis import head_general, head_trial
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.progress import Progress, unheard

DIGITS = 6  # of a number, that mean something


def measured_heads(lm: LanguageModel, progress: Progress = unheard) -> dict[str, Any]:
    """Return what all heads do in general, and the trials of those labels, by their names on disk.

    All of it is measured, whatever is on disk. `progress(done, of)` is called after each label's trial.
    """
    general = head_general.general(lm, disk=False)
    found: dict[str | None, Any] = {general.key: head_general.to_json(general)}
    name = head_trial.names(lm, head_trial.passages_of(lm))
    claims = [
        (row.block, row.head, row.role)
        for row in general.table.itertuples()
        if row.role in head_trial.TESTABLE
    ]
    for done, claim in enumerate(claims, 1):
        trial = head_trial.trial(lm, *claim, known=general, disk=False)
        found[name(*claim)] = head_trial.to_json(trial)
        progress(done, len(claims))
    assert None not in found, "a model without edits has a name"
    return cast(dict[str, Any], _rounded(found))


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
