"""A link from *Why this token?* to the first page with another word in the text: does the guess follow it?"""

from gptviz.analysis.alignment import differing
from gptviz.ui.shell import other_text, state
from gptviz.ui.shell.navigation import link
from gptviz.ui.shell.params import choosing
from gptviz.ui.shell.scene import Scene
from gptviz.ui.words import as_code, show_id


def draw(scene: Scene) -> None:
    """Draw the link where the prompt has an other text of which one token differs; else nothing.

    It is the other text of *Patching*, so that both pages speak of the same. None is made by trying, which takes long.
    """
    other, _ = other_text.beside(scene, tried=False)
    if other is None:
        return
    places = differing(scene.run.ids, other.ids)
    if len(places) != 1:
        return
    old, new = (as_code(show_id(scene.lm, ids[places[0]])) for ids in (scene.run.ids, other.ids))
    label = f"Check it: what is the guess with {new} in the place of {old}?"
    link("overview", state.link() | choosing({state.TEXT: other.text}), label=label)
