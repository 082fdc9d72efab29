"""Pictures that follow when the browser's light or dark, or the app's theme, changes while a page is open.

Streamlit turns its own page at once and runs nothing; what a page drew for the other mode would stay,
and be unreadable. This invisible component sees its background's colour change, and asks for a run.
"""

import streamlit as st

CSS = """
:host { display: block; }
.watch { width: 0; height: 0; color: var(--st-background-color); transition: color 1ms; }
"""

JS = """
export default function (component) {
  const { parentElement, setTriggerValue } = component;
  let watch = parentElement.querySelector('.watch');
  if (!watch) {
    watch = document.createElement('div');
    watch.className = 'watch';
    parentElement.appendChild(watch);
  }
  watch.ontransitionend = () => setTriggerValue('changed', true);
}
"""

_component = st.components.v2.component("gptviz.theme_watch", css=CSS, js=JS)


def follow_theme() -> None:
    """Run the page again when its theme changes; to be called outside every fragment."""
    _component(key="gptviz_theme_watch", on_changed_change=lambda: None)
