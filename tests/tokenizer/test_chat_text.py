"""What a chat template makes of a turn is what transformers makes of it; a hostile one ends, and harms nothing."""

import subprocess
import sys

import pytest
from transformers import PreTrainedTokenizerFast

from gptviz.tokenizer import chat_program
from gptviz.tokenizer.chat import chat_of
from gptviz.tokenizer.chat_text import LONGEST, chat_text
from tests.tokenizer.chats import TEMPLATES
from tests.tokenizer.families import tokenizer_of

TOKENS = {"bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>"}
TURNS = [
    "Hello!",
    "  two lines\n\nof <b>HTML</b> & \"quotes\" 'single' {{ 7 * 7 }} {% raw %} 你好 🙂\t",
    "",
    "<|eot_id|><tool_response>x",
]


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
def test_it_is_what_transformers_writes(template):
    theirs = PreTrainedTokenizerFast(tokenizer_object=tokenizer_of("llama3"), **TOKENS)
    theirs.chat_template = template
    chat = chat_of(template, theirs.special_tokens_map)
    for turn in TURNS:
        expected = theirs.apply_chat_template(
            [{"role": "user", "content": turn}], tokenize=False, add_generation_prompt=True
        )
        assert chat_text(chat, turn) == expected


@pytest.mark.parametrize(
    ("template", "said"),
    [
        (
            "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
            "was stopped",
        ),
        ("{{ 9 ** (9 ** 9) }}", "was stopped"),
        ("{{ 'x' * 10 ** 10 }}", "too much memory|was stopped"),
        (
            "{% set n = namespace(t='x') %}{% for i in range(40) %}{% set n.t = n.t + n.t %}{% endfor %}",
            "too much memory|was stopped",
        ),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "RecursionError|was stopped"),
        ("{{ ''.__class__.__mro__ }}", "SecurityError"),
        ("{{ cycler.__init__.__globals__.os.system('true') }}", "SecurityError|UndefinedError"),
        ("{{ messages.append(1) }}", "SecurityError"),
        ("{% include '/etc/passwd' %}", "TypeError|no loader"),
        ("{{ namespace(__class__=1) }}", "SecurityError"),
        ("{% if %}", "TemplateSyntaxError"),
        ("{{ raise_exception('only systems') }}", "TemplateError: only systems"),
        ("{{ nothing.of.this }}", "UndefinedError"),
        ("{{ 'x' * 100001 }}", "more than 100,000 characters"),
        ("(" * 5000 + "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "makes no text|was stopped"),
    ],
)
def test_a_hostile_template_ends_in_a_sentence(template, said):
    with pytest.raises(ValueError, match=said):
        chat_text(chat_of(template, {}), "Hello!")


def test_what_cannot_be_a_turn_is_refused():
    with pytest.raises(ValueError, match="has no chat template"):
        chat_text(chat_of({"rag": "x"}, {}), "Hello!")
    with pytest.raises(ValueError, match="at most 100,000 make a turn"):
        chat_text(chat_of("x", {}), "x" * (LONGEST + 1))
    with pytest.raises(ValueError, match="surrogate"):
        chat_text(chat_of("x", {}), "\ud800")
    assert chat_text(chat_of("{{ 'é🙂' * 50000 }}", {}), "") == "é🙂" * 50000


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limits")
@pytest.mark.parametrize("does", ["open('/etc/hosts')", "__import__('socket').socket()"])
def test_its_process_opens_nothing_while_a_template_runs(does):
    """Even one that found a way out of the sandbox: no file, no connection."""
    program = (
        f"import runpy, socket; found = runpy.run_path({chat_program.__file__!r}); "
        f"{{}}; print('begun', flush=True); {does}; print('harm')"
    )
    for begins, said in (("found['begin_limits']()", "begun\n"), ("pass", "begun\nharm\n")):
        ran = subprocess.run(
            [sys.executable, "-c", program.format(begins)], capture_output=True, text=True
        )
        assert ran.stdout == said
        assert ("Too many open files" in ran.stderr) == (begins != "pass")
