"""Print the lowest versions that pyproject.toml allows of what gptviz and its extra `app` need, as pins."""

import re
import tomllib
from pathlib import Path


def lowest(requirement: str) -> str:
    """The pin of a range's lower end: "torch>=2.13,<3" -> "torch==2.13". Raises ValueError without one."""
    found = re.match(r"([\w.-]+)>=([\w.]+)", requirement)
    if found is None:
        raise ValueError(
            f"{requirement!r} does not say its lowest version first, as in torch>=2.13"
        )
    return f"{found[1]}=={found[2]}"


def main() -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
    for requirement in [*project["dependencies"], *project["optional-dependencies"]["app"]]:
        print(lowest(requirement))


if __name__ == "__main__":
    main()
