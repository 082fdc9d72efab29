"""gptviz in the browser: streamlit run app.py. The router, nothing else; a page draws its own frame."""

from gptviz.ui.shell.navigation import navigate

navigate().run()
