"""The models that have a name: what each is, how large, and whether it is on this machine."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gptviz.digits import gigabytes
from gptviz.engine.config import GPTConfig
from gptviz.engine.kinds import Config
from gptviz.files.disk_cache import ASSETS
from gptviz.model import GPT_CONFIG_124M
from gptviz.models.checkpoints.folder import read_config
from gptviz.models.checkpoints.hub import HUB_MODELS
from gptviz.models.checkpoints.looks import bytes_of
from gptviz.models.loading import BUNDLED, KNOWN_MODELS, on_disk


@dataclass(frozen=True)
class Entry:
    """A model of the catalogue. `download_bytes` is None for what never needs a download."""

    name: str
    config: Config
    about: str
    download_bytes: int | None = None

    def folder(self) -> Path | None:
        """The folder of its download; None where it must still be fetched, or never has to be."""
        if self.download_bytes is not None:
            return on_disk(self.name)
        return None

    def where(self) -> str:
        """Whether it is on this machine, in a few words."""
        if self.download_bytes is None:
            if self.name in BUNDLED:
                return "in the package"
            return "made on the spot"
        folder = self.folder()
        if folder is None:
            return f"no: {gigabytes(self.download_bytes)} to fetch"
        return gigabytes(bytes_of(folder))


@cache
def catalog() -> tuple[Entry, ...]:
    """Every model with a name, those that are always here first."""
    mini = read_config(ASSETS / "mini")
    configs: dict[str, Config] = {"gpt2-untrained": GPTConfig.from_dict(GPT_CONFIG_124M)}
    return (
        *(Entry(name, configs.get(name, mini), about) for name, about in KNOWN_MODELS.items()),
        *(
            Entry(name, hub.config, hub.about, hub.download_bytes)
            for name, hub in HUB_MODELS.items()
        ),
    )
