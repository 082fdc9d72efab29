"""What a chat template makes of one turn, as transformers would: a process of its own runs it within limits."""

import json
import subprocess
import sys
import tempfile
import threading
from functools import lru_cache

from gptviz.tokenizer import chat_program
from gptviz.tokenizer.chat import Chat
from gptviz.tokenizer.chat_program import ANSWER, LONGEST
from gptviz.tokenizer.encodings import check_well_formed

SECONDS = 10  # by the clock, on a busy machine; the limit of the processor's time is the usual one
AT_ONCE = 2

_turn = threading.BoundedSemaphore(AT_ONCE)


def chat_text(chat: Chat, turn: str) -> str:
    """The text that the chat template makes of one turn of a user, up to where the model is to answer.

    It begins with what the template writes there, as `<|begin_of_text|>`: encode it without another one.
    The template is a stranger's program: it has 2 seconds, and no files, network or other processes on Linux.
    Raises ValueError where there is none, where it fails or does not end, and for more than 100,000 characters.
    """
    check_well_formed(turn)
    if chat.template is None:
        raise ValueError("this model has no chat template; type the text that it is to read")
    if len(turn) > LONGEST:
        raise ValueError(f"the text has {len(turn):,} characters; at most {LONGEST:,} make a turn")
    return _written(chat, turn)


@lru_cache(maxsize=16)
def _written(chat: Chat, turn: str) -> str:
    asked = {
        "path": sys.path,
        "template": chat.template,
        "tokens": dict(chat.tokens),
        "messages": [{"role": "user", "content": turn}],
    }
    if not _turn.acquire(timeout=SECONDS):
        raise ValueError("other chat templates are at work; try again in a moment")
    try:
        found = json.loads(_answer(json.dumps(asked).encode()))
    except (ValueError, RecursionError):
        raise ValueError(
            "the chat template was stopped: it needs too much time or memory"
        ) from None
    finally:
        _turn.release()
    if "error" in found:
        raise ValueError(f"the chat template makes no text of it: {found['error']}")
    text = str(found["text"])
    if len(text) > LONGEST:
        raise ValueError(f"the chat template writes more than {LONGEST:,} characters")
    check_well_formed(text)
    return text


def _answer(asked: bytes) -> bytes:
    """What the process says, cut at what an answer can have; nothing where it did not end in time."""
    command = [sys.executable, "-I", chat_program.__file__]
    with tempfile.TemporaryFile() as said:
        try:
            subprocess.run(
                command, input=asked, stdout=said, stderr=subprocess.DEVNULL, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            return b""
        said.seek(0)
        return said.read(ANSWER)
