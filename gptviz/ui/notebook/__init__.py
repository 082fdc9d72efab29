"""The app's pictures in a notebook, or in a file: the same numbers, marks and components, without a server.

sheet       what a picture is made of: a trace, the unchanged model's beside it, parts one below the other
pictures    the pictures, by the names of the pages: `PICTURES`
whole       all pictures of a page, by its own script
stills      the components' pictures without a browser, for files and for notebooks that are not trusted
frame       one HTML document with its own scripts, which a notebook shows in an iframe that sizes itself
"""

from gptviz.ui.notebook.frame import Picture
from gptviz.ui.notebook.pictures import PICTURES, show

__all__ = ["PICTURES", "Picture", "show"]
