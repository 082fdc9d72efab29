"""Where the app lies: app.py, its pages and Streamlit's settings.

A wheel has them inside the package, so that they go wherever it is copied; a checkout has them beside it.
"""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
if (_PACKAGE / "app.py").is_file():
    APP_FOLDER = _PACKAGE
else:
    APP_FOLDER = _PACKAGE.parent
