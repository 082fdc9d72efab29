"""A guide on paper: a hand-out for pupils, or notes for the teacher, as a page that a browser prints."""

from html import escape

from markdown_it import MarkdownIt

from gptviz.teach.guides.guide import Guide

STYLE = """body { font: 12pt/1.45 sans-serif; max-width: 46em; margin: 2em auto; padding: 0 1em; }
section { break-inside: avoid; margin-top: 1.6em; } h2 { font-size: 1.1em; margin: 0 0 0.3em; }
.place { color: #555; font-size: 0.85em; } .line { border-bottom: 1px solid #888; height: 2em; }
.ask { font-weight: bold; } .truth { border-left: 4px solid #555; padding-left: 0.8em; }"""


def printed(guide: Guide, notes: bool = False) -> str:
    """The HTML of a guide: with lines to write on, or the notes of who teaches, with what is read after."""
    markdown = MarkdownIt("commonmark", {"html": False})
    minutes = ""
    if guide.minutes:
        minutes = f"{guide.minutes} minutes"
    told = " · ".join(filter(None, (guide.audience, minutes, guide.learnt)))
    parts = [f"<h1>{escape(guide.title)}</h1><p class='place'>{escape(told)}</p>"]
    for number, step in enumerate(guide.steps, 1):
        text = dict(step.place).get("text", "")
        if text:
            where = f"{step.page}: {text}"
        else:
            where = step.page
        parts.append(f"<section><h2>{number}. {markdown.renderInline(step.heading)}</h2>")
        parts.append(f"<p class='place'>{escape(where)}</p>")
        parts.append(markdown.render(step.text))
        if step.ask is not None:
            parts.append(f"<p class='ask'>{markdown.renderInline(step.ask.text)}</p>")
            if not notes:
                parts += ["<div class='line'></div>"] * 2
        if notes:
            if step.ask:
                said = step.ask.hints
            else:
                said = ()
            hints = "".join(f"<li>{markdown.renderInline(hint)}</li>" for hint in said)
            parts.append(f"<div class='truth'>{markdown.render(step.after)}</div>")
            parts.append(f"<ol>{hints}</ol>" if hints else "")
        parts.append("</section>")
    head = f"<meta charset='utf-8'><title>{escape(guide.title)}</title><style>{STYLE}</style>"
    body = f"<html lang='{escape(guide.language)}'><head>{head}</head><body>{''.join(parts)}</body></html>"
    return f"<!doctype html>{body}\n"
