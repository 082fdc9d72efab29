"""gptviz in the browser: streamlit run app.py. The router, nothing else; a page draws its own frame.

The server imports this file once, for `app`; a visitor's run of it is `__main__`.
"""

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager

from gptviz.server.serving import MIDDLEWARE, ROUTES, lifespan
from gptviz.ui.shell.navigation import run

if __name__ == "__main__":
    run()
else:
    PagesManager.uses_pages_directory = False  # the navigation is ours, from the first visitor on
    app = st.App(__file__, middleware=MIDDLEWARE, routes=ROUTES, lifespan=lifespan)
