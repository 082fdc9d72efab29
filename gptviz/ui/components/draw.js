// Draws components without Streamlit: see code.py, which puts this file after the kernel and `gvComponents`,
// name -> the component.

// What Streamlit's theme gives a component, in the words of the palette that the kernel sets on `.gv`.
const gvTheme = `.gv {
  --st-font: "Source Sans 3", "Source Sans Pro", system-ui, sans-serif; --st-code-font: ui-monospace, monospace;
  --st-text-color: var(--ink); --st-background-color: var(--paper); --st-secondary-background-color: var(--panel);
  --st-primary-color: var(--accent); --st-border-color: var(--grid);
}`;

// In an element of its own, again and again; gives back what ends it. `data` is what the component's Python
// sends, with the `mode`; `send(event, value)` hears what is clicked.
function gvDraw(element, name, data, send = () => {}) {
  const inside = element.shadowRoot ?? element.attachShadow({ mode: 'open' });
  if (!inside.firstChild) inside.appendChild(document.createElement('style')).textContent = gvTheme;
  const saved = { stem: `gptviz-${name}`, title: '', lines: [] };
  return gvComponents[name]({ data: { saved, ...data }, parentElement: inside, setTriggerValue: send });
}
