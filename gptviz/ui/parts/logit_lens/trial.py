"""Can the lens be believed? Both lenses on trial, on texts that were not used for fitting."""

import pandas as pd
import streamlit as st

from gptviz.analysis import lens_trial
from gptviz.analysis.lens_trial import JACOBIAN, LOGIT, LensTrial
from gptviz.both import Both
from gptviz.digits import plus_minus
from gptviz.ui import sheet, words
from gptviz.ui.parts.logit_lens import lenses
from gptviz.ui.sheet import Param, Scene, if_there

# "on": put on trial, "off": stopped
TRIAL: Param[str | None] = Param("lens_on_trial", str, None, if_there)
MEASURE = Param("lens_trial_of", str, "kl_bits", if_there)
MEASURES = {
    "kl_bits": "Distance to the end",
    "same_token": "Same token as in the end",
    "alignment": "Moves the model",
}
UNITS = {
    "kl_bits": "KL divergence, bits",
    "same_token": "share of positions",
    "alignment": "alignment of changes",
}
PARAMS = (TRIAL, MEASURE)
CAPTION = (
    "lens: which one, of which the last has no constant, as in its source. kl_bits: KL divergence of the "
    "model's final distribution from the lens'. same_token: the share of positions where it has the model's "
    "top token; other_same_token: the other lens'. rank_correlation: of the lens' and the model's change of a "
    "token's logit when its direction is exchanged; alignment: of all tokens' changes. _se: standard errors "
    "over the texts."
)


def draw(scene: Scene) -> LensTrial | None:
    """Draw the section, and return the trial; None for a model without a Jacobian lens, or not yet tried."""
    if not lenses.is_fitted(scene.lm):
        return None
    st.subheader("Can the lens be believed?", anchor=False)
    if TRIAL.within(("on", "off")) != "on":
        if TRIAL.value == "off":
            st.info("Stopped: nothing was decided.")
        label = f"Put both lenses on trial on {lens_trial.TEXTS} other texts"
        sheet.button(label, "lens_trial_start", TRIAL.set, "on")
        return None
    trial = sheet.worked(
        scene.run.plain,
        lens_trial.lens_trial,
        lens_trial.TEXTS,
        says="Both lenses on trial: {} of {} texts".format,
        key="lens_trial_stop",
        stop=lambda: TRIAL.set("off"),
    )
    words.prose(_said(trial), "KL divergence", "residual stream")
    measure = MEASURE.choose("Shown", MEASURES)
    both = {lenses.LENSES[name].name: trial.of(name) for name in (LOGIT, JACOBIAN)}
    depths = trial.of(LOGIT)["after"].tolist()
    short = [name.removeprefix("block ").replace(" ·", "") for name in depths]
    few = len(depths) <= 15
    shown = [name if few or i % 2 == 0 else "" for i, name in enumerate(short)]
    ticks = {"tickvals": [*range(len(depths))], "ticktext": shown, "tickangle": -40}
    top = max(float(table[measure].max()) for table in both.values())
    if measure == "kl_bits":
        # the embedding's own logits are so far off that nothing else could be told apart
        top = max(float(table["kl_bits"].iloc[1:].max()) for table in both.values())
    sheet.curves(
        scene.unchanged,
        "lens_trial",
        {name: Both(table[measure].to_numpy()) for name, table in both.items()},
        depths,
        UNITS[measure],
        f"{MEASURES[measure]} of both lenses at each depth",
        which=(measure,),
        axis=ticks | {"range": [-0.4, len(depths) - 0.6]},
        up={"range": [min(0.0, _least(both, measure)), 1.08 * max(top, 1e-6)]},
        many=True,
        height=300,
    )
    st.caption(_how(trial, measure, both))
    return trial


def _least(both: dict[str, pd.DataFrame], measure: str) -> float:
    return 1.08 * min(float(table[measure].min()) for table in both.values())


def _middle(trial: LensTrial, name: str) -> pd.Series:
    """The row of a lens in the middle of the model: after half of its blocks."""
    table = trial.of(name)
    return table.iloc[(len(table) + 1) // 2]


def _said(trial: LensTrial) -> str:
    """What came out, at the depth in the middle."""
    logit = _middle(trial, LOGIT)
    jacobian = _middle(trial, JACOBIAN)

    def number(row: pd.Series, column: str) -> str:
        return plus_minus(row[column], row[f"{column}_se"]).removeprefix("+")

    return (
        f"After {_place(str(logit['after']))}, the **Jacobian lens** is {number(jacobian, 'kl_bits')} bits "
        f"from the end, the **logit lens** {number(logit, 'kl_bits')} bits (KL divergence). They have the "
        f"model's final token on top at {_percents(jacobian)} and {_percents(logit)} of positions, and both "
        f"the same token at {_percents(logit, 'other_same_token')}. If we exchange what a lens reads in the "
        "residual stream for another text's, the model moves as the lens says with an alignment of "
        f"{number(jacobian, 'alignment')} (Jacobian lens) and {number(logit, 'alignment')} (logit lens)."
    )


def _percents(row: pd.Series, column: str = "same_token") -> str:
    return f"{words.percent(row[column])} (± {words.percent(row[f'{column}_se'])})"


def _place(after: str) -> str:
    """A row's name in a sentence: "block 3's attention"."""
    block, _, part = after.partition(" · ")
    return f"{block}'s {part}" if part else "the embedding"


def _how(trial: LensTrial, measure: str, both: dict[str, pd.DataFrame]) -> str:
    """What was measured, on how many texts, against what."""
    texts = (
        f"{trial.texts} texts of five books; none was used for fitting, which read later pages of the same "
        "books. ± is the standard error over the texts."
    )
    if measure == "alignment":
        return (
            f"{trial.exchanges} exchanges at each depth: the stream's part along the direction by which the "
            f"lens reads one of its ten top tokens becomes that of another text. Compared with the unchanged "
            f"model: 1 means that all tokens move as the lens says, 0 is chance. {texts}"
        )
    about = f"{trial.positions} positions from {lens_trial.SKIP} on, in {texts}"
    first = both[lenses.LENSES[LOGIT].name]["kl_bits"].iloc[0]
    if measure == "kl_bits":
        about += f" The logit lens of the embedding is at {words.fixed(first, 1)} bits."
    return about


def table(trial: LensTrial) -> None:
    """Add the trial's table to the box of details."""
    sheet.numbers_of("lens_trial", trial.table, CAPTION, "the trial")
