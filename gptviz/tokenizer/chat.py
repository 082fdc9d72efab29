"""Chat templates: programs in Jinja that write one text out of the turns of a chat.

A folder of transformers brings them beside its tokenizer. To read one runs nothing of it: it is a text here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from gptviz.tokenizer.encodings import well_formed
from gptviz.tokenizer.settings import NAMED, shown

KEY = "chat_template"  # in tokenizer_config.json
FILE = "chat_template.jinja"  # instead of the key, as transformers writes it today
FURTHER = "additional_chat_templates"  # a folder of files beside it, named for what they are for
DEFAULT = "default"

# Those of Llama 3, Qwen3 and gpt-oss have 4,000 to 17,000 characters.
MOST_TEMPLATES = 16
LONGEST_TEMPLATE = 2**17
LONGEST_NAME = 100
MOST_BYTES = 4  # of a character in UTF-8


@dataclass(frozen=True)
class Chat:
    """What a tokenizer brings for chats: templates by name, and the special tokens that they call by theirs.

    `tokens` are pairs as ("bos_token", "<s>"). `not_read` says in a sentence why a template is not among them.
    """

    templates: tuple[tuple[str, str], ...] = ()
    tokens: tuple[tuple[str, str], ...] = ()
    not_read: str = ""

    @property
    def template(self) -> str | None:
        """The template that is used where none is asked for by its name; None without one."""
        return dict(self.templates).get(DEFAULT)

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it: `chat_of` reads it."""
        return {
            "templates": dict(self.templates),
            "tokens": dict(self.tokens),
            "not_read": self.not_read,
        }


NO_CHAT = Chat()


def read_chat(folder: Path, config: Mapping[str, Any], tokens: Mapping[str, str]) -> Chat:
    """The chat templates of a folder: of files of their own, or else of its tokenizer_config.json.

    `tokens` are the special tokens by the keys that name them. What cannot be read is said, and refuses no
    model: a template changes no id.
    """
    paths = {DEFAULT: folder / FILE} if (folder / FILE).is_file() else {}
    further = (folder / FURTHER).glob("*.jinja")
    paths |= {path.stem: path for path in sorted(islice(further, MOST_TEMPLATES + 1))}
    if not paths:
        return chat_of(config.get(KEY), tokens)
    texts: dict[str, Any] = {}
    for name, path in paths.items():
        if path.stat().st_size > MOST_BYTES * LONGEST_TEMPLATE:
            return chat_of(texts, tokens, _too_long(name, path.stat().st_size // MOST_BYTES))
        texts[name] = path.read_text(encoding="utf-8", errors="replace")
    return chat_of(texts, tokens)


def chat_of(given: Any, tokens: Mapping[str, Any], not_read: str = "") -> Chat:
    """Make a Chat of a "chat_template": one text, a list of named ones, or names with texts; None is none.

    `tokens` may have other keys than those of special tokens, which are left out.
    """
    if isinstance(given, str):
        given = {DEFAULT: given}
    if isinstance(given, list | tuple):
        given = _by_name(given)
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        not_read = f"It is {shown(given)}, neither a text nor a list of named texts."
        given = {}
    templates: dict[str, str] = {}
    for name, text in given.items():
        if not isinstance(name, str) or not isinstance(text, str) or len(name) > LONGEST_NAME:
            not_read = f"{shown(name)} names {shown(text)}, and a template is a text with a name."
        elif len(text) > LONGEST_TEMPLATE:
            not_read = _too_long(name, len(text))
        elif len(templates) == MOST_TEMPLATES:
            not_read = f"There are more than {MOST_TEMPLATES} templates, and the rest is not read."
        else:
            templates[well_formed(name)] = well_formed(text)
    named = {
        key: well_formed(token)
        for key, token in tokens.items()
        if key in NAMED and isinstance(token, str)
    }
    return Chat(tuple(templates.items()), tuple(named.items()), not_read)


def _by_name(given: list[Any] | tuple[Any, ...]) -> Any:
    """Names with texts of a list of objects that have both; the list itself where it is not of these."""
    if all(isinstance(one, Mapping) and {"name", "template"} <= one.keys() for one in given):
        return {str(one["name"]): one["template"] for one in given}
    return given


def _too_long(name: str, length: int) -> str:
    return (
        f"The template {name[:LONGEST_NAME]!r} has about {length:,} characters, and at most "
        f"{LONGEST_TEMPLATE:,} are read."
    )
