"""The prompt's tokens as a strip of chips: a st.components.v2 component.

A click, or Enter on a focused chip, selects its token; arrow keys walk along the strip. The strip
wraps, and scrolls when it is higher than a few lines.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from gptviz.figures.theme import Mode, palette, position_color
from gptviz.tokenizer import show_token
from gptviz.trace import Token

CSS = """
:host { display: block; }
.strip {
  display: flex; flex-wrap: wrap; gap: 3px 2px; align-items: stretch;
  max-height: var(--chips-height, 7.6rem); overflow-y: auto; padding: 4px;
  font-family: var(--st-font); color: var(--st-text-color);
}
.chip {
  all: unset; box-sizing: border-box; cursor: pointer; position: relative;
  padding: 2px 5px 3px; border-radius: 5px; background: var(--chip); min-width: 1.1em; text-align: center;
  font-size: 1rem; line-height: 1.35; white-space: pre; overflow-wrap: anywhere;
  border-bottom: 3px solid transparent;
}
.chip:hover { filter: brightness(0.94) saturate(1.3); }
.strip.dark .chip:hover { filter: brightness(1.25); }
.chip:focus-visible { outline: 2px dashed var(--st-primary-color); outline-offset: 1px; }
.chip[aria-pressed="true"] { box-shadow: 0 0 0 2.5px var(--st-primary-color); font-weight: 650; z-index: 1; }
.chip.query { border-bottom-color: var(--query); }
.chip.key { border-bottom-color: var(--key); }
.chip.value { border-bottom-color: var(--value); }
.chip.output { border-bottom-color: var(--output); }
.next {
  padding: 2px 6px 3px; border-radius: 5px; border: 1.5px dashed var(--st-primary-color); margin-left: 6px;
  color: var(--st-primary-color); font-weight: 750; white-space: pre; line-height: 1.35; cursor: help;
}
.next::before { content: "→ "; font-weight: 400; }
"""

JS = """
export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  let strip = parentElement.querySelector('.strip');
  if (!strip) {
    strip = document.createElement('div');
    strip.setAttribute('role', 'toolbar');
    strip.setAttribute('aria-label', 'The tokens of the prompt; choose one');
    strip.dataset.testid = 'chips';
    parentElement.appendChild(strip);
  }
  strip.className = 'strip ' + data.mode;
  for (const [name, color] of Object.entries(data.roles)) strip.style.setProperty('--' + name, color);
  const signature = JSON.stringify(data.tokens.map((t) => [t.id, t.shown]));
  if (strip.dataset.signature !== signature) {      // keep the chips, and the focus, when only colours change
    strip.replaceChildren(...data.tokens.map((token, position) => {
      const chip = document.createElement('button');
      chip.textContent = token.shown;
      chip.dataset.testid = 'chip';
      chip.dataset.position = position;
      chip.dataset.id = token.id;
      chip.title = token.title;
      chip.setAttribute('aria-label', token.title);
      return chip;
    }));
    strip.dataset.signature = signature;
  }
  const chips = [...strip.querySelectorAll('.chip, [data-testid=chip]')];
  chips.forEach((chip, position) => {
    const selected = position === data.selected;
    chip.className = 'chip ' + (data.highlight[position] || '');
    chip.style.setProperty('--chip', data.colors[position % data.colors.length]);
    chip.setAttribute('aria-pressed', selected);
    chip.tabIndex = selected ? 0 : -1;
  });
  strip.querySelector('.next')?.remove();
  if (data.next) {
    const next = document.createElement('span');
    next.className = 'next';
    next.textContent = data.next.shown;
    next.title = data.next.title;
    next.dataset.testid = 'next-token';
    next.dataset.id = data.next.id;
    next.dataset.probability = data.next.probability;
    strip.appendChild(next);
  }
  const chosen = chips[data.selected];
  if (chosen && strip.scrollHeight > strip.clientHeight) {
    const top = chosen.offsetTop - strip.offsetTop;
    if (top < strip.scrollTop || top + chosen.offsetHeight > strip.scrollTop + strip.clientHeight)
      strip.scrollTop = top - strip.clientHeight / 2;
  }
  strip.onclick = (event) => {
    const chip = event.target.closest('.chip');
    if (chip) setTriggerValue('position', Number(chip.dataset.position));
  };
  strip.onkeydown = (event) => {
    const here = chips.indexOf(event.target);
    const to = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: chips.length - 1 }[event.key];
    if (here >= 0 && to !== undefined && chips[to]) {
      event.preventDefault();
      chips.forEach((chip) => { chip.tabIndex = -1; });
      chips[to].tabIndex = 0;
      chips[to].focus();
    }
  };
}
"""

_component = st.components.v2.component("gptviz.chips", css=CSS, js=JS)


def token_title(token: Token) -> str:
    """A chip's hover: what the token is, where it stands, and its id."""
    return f"`{show_token(token.raw)}` (position {token.position}), token id {token.id}"


def chips(
    tokens: Sequence[Token],
    selected: int,
    mode: Mode,
    on_select: Callable[[int], Any],
    *,
    key: str = "chips",
    highlight: Mapping[int, str] | None = None,
    following: dict[str, Any] | None = None,
) -> None:
    """Draw the strip; `on_select(position)` runs before the rerun that a click causes.

    `highlight` underlines positions as "query", "key", "value" or "output". `following` is a token
    shown after the last one, not part of the text: {"shown", "title", "id", "probability"}.
    """
    colors = palette(mode)

    def selected_one() -> None:
        position = st.session_state[key].position
        if isinstance(position, int) and 0 <= position < len(
            tokens
        ):  # a late click may follow a shorter text
            on_select(position)

    _component(
        key=key,
        data={
            "tokens": [{"id": t.id, "shown": show_token(t.raw), "title": token_title(t)} for t in tokens],
            "selected": selected,
            "mode": mode,
            "colors": [position_color(position, mode) for position in range(len(colors.positions))],
            "roles": {
                "query": colors.query,
                "key": colors.key,
                "value": colors.value,
                "output": colors.output,
            },
            "highlight": {str(position): role for position, role in (highlight or {}).items()},
            "next": following,
        },
        on_position_change=selected_one,
    )
