"""gptviz in the browser: streamlit run app.py. The router, nothing else; a page draws its own frame.

The server imports this file once, for `app`; a visitor's run of it is `__main__`.
"""

import streamlit as st

from gptviz.ui.serving import MIDDLEWARE, ROUTES, lifespan
from gptviz.ui.shell.navigation import run

if __name__ == "__main__":
    run()
else:
    app = st.App(__file__, middleware=MIDDLEWARE, routes=ROUTES, lifespan=lifespan)
