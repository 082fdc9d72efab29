"""What a stranger wrote, shown as the text that it is."""

import re

# where a browser's Markdown begins a link that nobody marked as one: an address, and the @ of an e-mail's
_LINK_BEGINS = re.compile(r"(?=https?://|www\.|@[-\w]+\.)", re.IGNORECASE)
JOINER = "\u2060"  # has no width, and no line breaks at it


def unlinked(text: str) -> str:
    """The same text, in which a browser's Markdown finds no address to make a link of.

    Backslashes do not help there: it looks for addresses when they are gone.
    """
    return _LINK_BEGINS.sub(JOINER, text)


def as_code(label: str) -> str:
    """A token in a sentence of Markdown: as code, whatever signs it is made of.

    The fence is one backtick longer than any run of them in the label; blanks keep apart a fence and a
    label that begins or ends with a backtick, as CommonMark has it.
    """
    label = re.sub(r"[\r\n]+", "⏎", label)  # an empty line would end the code
    longest = max((len(run) for run in re.findall(r"`+", label)), default=0)
    fence = "`" * (longest + 1)
    gap = ""
    if label.startswith("`") or label.endswith("`") or not label.strip():
        gap = " "
    return f"{fence}{gap}{label}{gap}{fence}"


def escaped(text: str) -> str:
    """A stranger's text in Markdown: no sign of it means anything, and no address in it becomes a link."""
    lines = re.split(r"[\r\n]+", _MARKS.sub(r"\\\g<0>", unlinked(text)))
    if len(lines) > 1:
        lines = [line.strip() for line in lines if line.strip()]  # none is indented as code is
    return "  \n".join(_BEGINS.sub(r"\1\\\2", line) for line in lines)


# what means something in Markdown wherever it stands; of _ only that which is not inside of a word
_MARKS = re.compile(r"[\\`*\[\]<>#|$~&]|(?<![^\W_])_|_(?![^\W_])")
_BEGINS = re.compile(r"\A( {0,3}\d{0,9})([-+=.)])")  # and what does at the beginning of a line
