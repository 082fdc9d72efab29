"""Every component's example, and under each what it has sent: for a test, not a page of gptviz.

python -m streamlit run tests/browser/components_app.py
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import streamlit as st

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:  # Streamlit puts this file's own folder there
    sys.path.insert(0, str(ROOT))

from gptviz.server.serving import ROUTES  # noqa: E402
from gptviz.ui import components  # noqa: E402
from tests.browser import examples  # noqa: E402


def with_examples() -> list[str]:
    """The components that have an example, by name."""
    return [
        found.name for found in iter_modules(components.__path__) if hasattr(examples, found.name)
    ]


def main() -> None:
    st.set_page_config(page_title="components", layout="wide")
    only = st.query_params.get("only")
    for name in with_examples() if only is None else [only]:
        st.subheader(name, anchor=False)

        def on(event: str, name: str = name) -> Callable[..., None]:
            def sent(*came: Any) -> None:
                value = came[0] if len(came) == 1 else list(came)
                st.session_state.setdefault("sent", {}).setdefault(name, []).append([event, value])

            return sent

        with st.container(key=f"example_{name}"):
            getattr(examples, name)(on)
        st.code(json.dumps(st.session_state.get("sent", {}).get(name, [])), language=None)


if __name__ == "__main__":
    main()
else:  # as in app.py: the components' code is served beside Streamlit
    app = st.App(__file__, routes=ROUTES)
