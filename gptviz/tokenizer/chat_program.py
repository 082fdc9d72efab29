"""A program of its own, which runs a stranger's chat template within limits: started by its path, by `chat_text`.

It imports nothing of ours, whose torch takes seconds. From standard input it reads, as JSON, where modules are,
the template, the special tokens by name and the turns; it answers on standard output with the text, or an error.
"""

import json
import math
import os
import sys
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

MEMORY = 2**28  # bytes beyond what it has when it begins to run the template
SECONDS = 2  # of the processor
BEHIND = 5  # the server, as the other processes for what strangers bring
LONGEST = 100_000  # characters of the text
ANSWER = 12 * LONGEST + 2**12  # bytes: JSON spells a character outside of ASCII by up to 12


def begin_limits() -> None:
    """Have the system refuse memory, files, sockets and further processes from here on, and end it in time.

    On Windows there is only the time, which the server looks at.
    """
    try:
        import resource
    except ImportError:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = math.ceil(used.ru_utime + used.ru_stime) + SECONDS
    limits = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_FSIZE: ANSWER,
        resource.RLIMIT_NOFILE: 0,  # those that are open stay: in, out and errors
        resource.RLIMIT_NPROC: 0,
    }
    size = Path("/proc/self/statm")  # Linux's; macOS has no limit of memory that it keeps to
    if size.exists():
        pages = int(size.read_text().split()[0])
        limits[resource.RLIMIT_AS] = pages * resource.getpagesize() + MEMORY
    for kind, limit in limits.items():
        resource.setrlimit(kind, (limit, limit))


def environment() -> Any:
    """Jinja as `transformers` sets it up for chat templates: a sandbox whose lists and dicts cannot change."""
    import jinja2.ext
    import jinja2.nodes
    import jinja2.utils
    from jinja2.exceptions import SecurityError, TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(jinja2.ext.Extension):
        """The tag `generation`, which marks what the model wrote, and changes no text."""

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            call = self.call_method("as_it_is")
            return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

        def as_it_is(self, caller: Any) -> Any:
            return caller()

    Generation.tags = {"generation"}

    class Names(jinja2.utils.Namespace):
        """A namespace that takes no name with an underscore in front, which could lead to Python's own."""

        def __init__(*args: Any, **kwargs: Any) -> None:
            self, *given = args
            values = dict(*given, **kwargs)
            for name in values:
                Names.check(name)
            jinja2.utils.Namespace.__init__(self, values)

        def __setitem__(self, name: str, value: Any) -> None:
            Names.check(name)
            jinja2.utils.Namespace.__setitem__(self, name, value)

        @staticmethod
        def check(name: Any) -> None:
            if isinstance(name, str) and name.startswith("_"):
                raise SecurityError(f"a namespace takes no name such as {name!r}")

    class Dicts:
        """`dict(...)`, and nothing else of Python's class."""

        def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
            return dict(*args, **kwargs)

        def fromkeys(self, *args: Any) -> dict[Any, Any]:
            return dict.fromkeys(*args)

    def to_json(
        value: Any,
        ensure_ascii: bool = False,
        indent: Any = None,
        separators: Any = None,
        sort_keys: bool = False,
    ) -> str:
        how: dict[str, Any] = {"indent": indent, "separators": separators, "sort_keys": sort_keys}
        return json.dumps(value, ensure_ascii=ensure_ascii, **how)

    def raise_exception(message: str) -> None:
        raise TemplateError(message)

    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    made.filters["tojson"] = to_json
    made.globals |= {
        "raise_exception": raise_exception,
        "strftime_now": lambda format: datetime.now().strftime(format),
        "dict": Dicts(),
        "namespace": Names,
    }
    return made


def warm_up(made: Any) -> None:
    """Have Jinja import and look up what it needs at the first text and the first error: files are refused later."""
    from jinja2.exceptions import TemplateError

    well = "{{ strftime_now('%d %b') }}{% for a in [1] %}{{ a | tojson }}{% endfor %}"
    made.from_string(well).render()
    for wrong in ("{{ nothing.of.this }}", "{% if %}"):
        with suppress(TemplateError):
            made.from_string(wrong).render()


def main() -> None:
    """Answer one request, and end before anything of the template can run again."""
    asked = json.load(sys.stdin)
    sys.path[:] = asked["path"]
    made = environment()
    warm_up(made)
    if hasattr(os, "nice"):
        os.nice(BEHIND)
    begin_limits()
    try:
        text = made.from_string(asked["template"]).render(
            messages=asked["messages"],
            tools=None,
            documents=None,
            add_generation_prompt=True,
            **asked["tokens"],
        )
        answer = {"text": text[: LONGEST + 1]}
    except MemoryError:
        answer = {"error": "it needs too much memory"}
    except BaseException as error:  # whatever a stranger's template comes to
        answer = {"error": f"{type(error).__name__}: {error}"[:500]}
    sys.stdout.write(json.dumps(answer))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
