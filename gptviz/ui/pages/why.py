"""Why the model says a token: its logit as the sum of what every part wrote, and who read what where."""

from gptviz.ui.shell.page import page
from gptviz.ui.views.why import view
from gptviz.ui.views.why.derived import needs

scene = page("Why this token?", needs, params=view.PARAMS, strip=False)
view.draw(scene)
