"""What the Hugging Face cache on this machine holds, and which files of a repository are needed.

The library huggingface_hub says where the cache is (HF_HOME, HF_HUB_CACHE) and how it is laid out.
Nothing here touches a network.
"""

from dataclasses import dataclass
from pathlib import Path

from gptviz.engine.config import GPTConfig
from gptviz.engine.kinds import Config
from gptviz.engine.llama_config import LlamaConfig
from gptviz.models.checkpoints.hugging_face import WEIGHTS
from gptviz.models.checkpoints.tensors import weight_map

CONFIG = "config.json"
TOKENIZERS = (("tokenizer.json",), ("vocab.json", "merges.txt"))


@dataclass(frozen=True)
class HubModel:
    """A model that can be downloaded by a short name.

    `repositories`: where it is, then the names under which other programs may have put it into the cache.
    """

    repositories: tuple[str, ...]
    config: Config
    about: str
    download_bytes: int  # about the size of its weights' file


def _gpt2(repository: str, n_layers: int, n_heads: int, emb_dim: int, about: str) -> HubModel:
    config = GPTConfig(
        50257, 1024, emb_dim, n_heads, n_layers, 0.1, qkv_bias=True, tie_embeddings=True
    )
    masks = n_layers * config.context_length**2  # unlike ours, a float32 mask a block
    return HubModel(
        (repository, repository.split("/")[1]), config, about, 4 * (config.parameters + masks)
    )


def _tiny_stories(size: str, n_layers: int, emb_dim: int, about: str) -> HubModel:
    """A GPT-Neo with masks of a byte; the file has 2,048 positions, of which we read 256."""
    config = GPTConfig(50257, 256, emb_dim, 16, n_layers, tie_embeddings=True)
    numbers = config.parameters + (2048 - config.context_length) * emb_dim
    return HubModel(
        (f"roneneldan/TinyStories-{size}",), config, about, 4 * numbers + n_layers * 2048**2
    )


SMOLLM2_135M = LlamaConfig(
    vocab_size=49152,
    context_length=8192,
    emb_dim=576,
    n_heads=9,
    n_layers=30,
    hidden_dim=1536,
    n_kv_groups=3,
    rope_base=100_000.0,
    tie_embeddings=True,
)
QWEN3_600M = LlamaConfig(
    vocab_size=151_936,
    context_length=32_768,  # of 40,960: see LONGEST_CONTEXT
    emb_dim=1024,
    n_heads=16,
    n_layers=28,
    hidden_dim=3072,
    n_kv_groups=8,
    head_dim=128,
    rope_base=1_000_000.0,
    qk_norm=True,
    tie_embeddings=True,
    norm_eps=1e-6,
)

HUB_MODELS = {
    "gpt2": _gpt2(
        "openai-community/gpt2", 12, 12, 768, "OpenAI's smallest GPT-2 (2019): 8 million web pages"
    ),
    "gpt2-medium": _gpt2(
        "openai-community/gpt2-medium", 24, 16, 1024, "OpenAI's GPT-2 medium (2019)"
    ),
    "gpt2-large": _gpt2("openai-community/gpt2-large", 36, 20, 1280, "OpenAI's GPT-2 large (2019)"),
    "gpt2-xl": _gpt2("openai-community/gpt2-xl", 48, 25, 1600, "OpenAI's GPT-2 XL (2019)"),
    "distilgpt2": _gpt2(
        "distilbert/distilgpt2", 6, 12, 768, "half of GPT-2's blocks, taught to answer as it does"
    ),
    "tinystories-1m": _tiny_stories(
        "1M", 8, 64, "a GPT-Neo that read stories for small children (2023)"
    ),
    "tinystories-8m": _tiny_stories("8M", 8, 256, "the same, with four times the width"),
    "tinystories-33m": _tiny_stories(
        "33M", 4, 768, "the same, as wide as GPT-2 and with a third of its blocks"
    ),
    "smollm2-135m": HubModel(
        ("HuggingFaceTB/SmolLM2-135M",),
        SMOLLM2_135M,
        "a small Llama (2024): 2,000 billion tokens; licence Apache 2.0",
        2 * SMOLLM2_135M.parameters,
    ),
    "qwen3-0.6b": HubModel(
        ("Qwen/Qwen3-0.6B",),
        QWEN3_600M,
        "Alibaba's smallest Qwen3 (2025): 36,000 billion tokens, then chats; licence Apache 2.0",
        # its file has the output head beside the embedding, which is the same
        2 * (QWEN3_600M.parameters + QWEN3_600M.vocab_size * QWEN3_600M.emb_dim),
    ),
}


def is_hub_id(name: str) -> bool:
    """Whether a name has the form of a repository's: owner/name."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return name.count("/") == 1


def cached_folder(repositories: tuple[str, ...]) -> Path | None:
    """The folder of the first of these repositories that is in the cache as a whole, or None."""
    from huggingface_hub import try_to_load_from_cache

    for repository in repositories:
        config = try_to_load_from_cache(repository, CONFIG)
        if isinstance(config, str) and missing_weights(Path(config).parent) == ():
            return Path(config).parent
    return None


def missing_weights(folder: Path) -> tuple[str, ...] | None:
    """The files that the folder's weights still need: () when they are all there, None when none is."""
    for name in WEIGHTS:
        if (folder / name).is_file():
            if name.endswith(".json"):
                needed = shards_of(folder / name)
            else:
                needed = ()
            return tuple(shard for shard in needed if not (folder / shard).is_file())
    return None


def shards_of(index: Path) -> tuple[str, ...]:
    """The files that an index of shards names. Raises CheckpointError for a damaged index."""
    return tuple(sorted(set(weight_map(index).values())))
