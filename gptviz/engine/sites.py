"""The table of sites: every place in a model whose numbers can be captured or replaced.

A site has a name, such as "attn" for attention weights; most sites exist once in every block. A key names one
place: the site and its block, such as ("attn", 3), or ("embed", None) outside the blocks. The capture, the
edits, the documentation and the tests all read this table, so that a new row in it is all that a new site
needs. The rows are in `engine/architecture.py`, a table for each class of model, and `engine/site.py` says what
a row means. `sites_of` gives the table of a model by its config; `SITES` is GPT-2's, and `ALL_SITES` has the
rows of all, for what is known before there is a model, such as the text form of an edit.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from gptviz.engine.architecture import ARCHITECTURES, GPT2, Architecture, architecture_of
from gptviz.engine.index import index_of, listed
from gptviz.engine.kinds import Config
from gptviz.engine.site import Key, Site
from gptviz.text.suggest import did_you_mean

# A trace of at most this many bytes holds every site; that costs less than running a block once more.
SMALL = 2**24

HOW = 'give a list of sites, such as ["z", ("attn", 3)]'
INTO_BLOCK = "resid_pre"  # the input of a block, from which it can be run once more

SITES: dict[str, Site] = dict(GPT2.sites)


def _all_of(kinds: Iterable[Architecture]) -> dict[str, Site]:
    """The rows of all these tables, each behind those that stand before it in its own."""
    rows: list[Site] = []
    for kind in kinds:
        place = 0
        for site in kind.sites.values():
            names = [row.name for row in rows]
            if site.name in names:
                place = names.index(site.name) + 1
            else:
                rows.insert(place, site)
                place += 1
    return {row.name: row for row in rows}


# Where two models have a site of one name, it is alike in what `Site` says of heads, weights and the stream;
# the first one's row is here.
ALL_SITES: dict[str, Site] = _all_of(ARCHITECTURES)


def sites_of(config: Config) -> Mapping[str, Site]:
    """The table of a model with this config, in the order of the pass, by name."""
    return architecture_of(config).sites


def table_with(name: str) -> Mapping[str, Site]:
    """The table of the first class of model that has this site, for a sentence about it without a model."""
    return next(kind.sites for kind in ARCHITECTURES if name in kind.sites)


def all_keys(config: Config) -> list[Key]:
    """Every (site, block) that a model of this size has, in the order of the forward pass."""
    sites = list(sites_of(config).values())
    in_block = [site.name for site in sites if site.per_block]
    outside = [site.name for site in sites if not site.per_block]
    blocks = [(name, b) for b in range(config.n_layers) for name in in_block]
    # the output of the last norm comes after all blocks
    before: list[Key] = [(name, None) for name in outside[:-1]]
    return [*before, *blocks, (outside[-1], None)]


def held_keys(config: Config, n_tokens: int, at_once: Iterable[str | Key] = ()) -> list[Key]:
    """The keys that a trace of all sites holds: every key, if they take no more bytes than `SMALL`.

    Otherwise the trace is lean: it holds what the other sites can be computed from (the input, keys and
    values of each block, the output of the last one, and the sites outside the blocks), and `at_once`.
    """
    keys = all_keys(config)
    sites = sites_of(config)
    last = config.n_layers - 1
    keys_held = dict.fromkeys(expand(at_once, config, "at_once"))
    if 4 * sum(sites[site].floats(n_tokens, config) for site, _ in keys) <= SMALL:
        return keys
    for key in keys:
        site, block = key
        if (
            block is None
            or sites[site].in_past
            or site == INTO_BLOCK
            or key == ("resid_post", last)
        ):
            keys_held[key] = None
    return list(keys_held)


def between_blocks(config: Config) -> list[tuple[Key, Key]]:
    """Pairs of keys: a block's output, and the next block's input, which is the same unless it is edited."""
    return [(("resid_post", b), (INTO_BLOCK, b + 1)) for b in range(config.n_layers - 1)]


def key_of(wanted: str | Key) -> Key:
    """Turn the name of a site, or (site, block), into a key; a name alone gets the block None.

    Raises ValueError for anything else. Whether the site exists is checked by `check_key`.
    """
    if isinstance(wanted, str):
        return wanted, None
    if not isinstance(wanted, tuple | list) or len(wanted) != 2:
        raise ValueError(
            f'{wanted!r} is neither a site nor a site and a block, such as ("attn", 3); a head is a row '
            'of what a trace has there: t["attn", 3][1]'
        )
    return wanted[0], wanted[1]


def check_key(site: str, block: object, config: Config | None) -> Key:
    """The key of a site and a block, with a negative block counted from 0.

    Raises ValueError, which lists what there is, if a model with this config has no such place. With None, only
    that some model has the site, and whether it needs a block, are checked.
    """
    sites = ALL_SITES if config is None else sites_of(config)
    if not isinstance(site, str) or site not in sites:
        if config is not None and isinstance(site, str) and site in ALL_SITES:
            raise ValueError(f"this model has no site {site!r}; its sites are {', '.join(sites)}")
        raise ValueError(
            f"there is no site {site!r}{did_you_mean(site, sites)}; the sites are {', '.join(sites)}"
        )
    if not sites[site].per_block:
        if block is not None:
            raise ValueError(
                f"site {site!r} is outside the blocks; ask for it without the block {block!r}"
            )
        return site, None
    n_layers = None if config is None else config.n_layers
    if block is None:
        if n_layers is None:
            there_are = ""
        else:
            there_are = f", from 0 to {n_layers - 1}"
        raise ValueError(f"site {site!r} needs a block{there_are}")
    return site, index_of("block", block, n_layers)


class HasConfig(Protocol):
    """A LanguageModel, as a list of sites needs it."""

    @property
    def config(self) -> Config: ...


# what may stand in a list of sites: one, or a function of the model that says which it has for something
Wanted = str | Key | Callable[..., Iterable[str | Key]]


def named(lm: HasConfig, wanted: Iterable[Wanted]) -> tuple[str | Key, ...]:
    """The sites of a list, each once, with those that its functions give for this model."""
    found: list[str | Key] = []
    for site in listed("keep", wanted, HOW):
        found += site(lm) if callable(site) else (site,)
    return tuple(dict.fromkeys(found))


def start(lm: HasConfig, *_: object) -> tuple[str, ...]:
    """The site of the stream into block 0, for a list of sites."""
    return (architecture_of(lm.config).start,)


def embedded(lm: HasConfig, *_: object) -> tuple[str, ...]:
    """The sites whose sum is the stream into block 0."""
    return tuple(architecture_of(lm.config).embedded.values())


def scored(lm: HasConfig, *_: object) -> tuple[str, str]:
    """The sites whose dot products are the scores of attention."""
    return architecture_of(lm.config).scores


def kept(lm: HasConfig, *_: object) -> tuple[str, str]:
    """The sites of the keys and values that later tokens need."""
    return architecture_of(lm.config).past


def expand(keep: Iterable[str | Key] | None, config: Config, what: str = "keep") -> list[Key]:
    """Turn `keep` into a list of keys: None is every key, the name of a site is that site in every block."""
    if keep is None:
        return all_keys(config)
    sites = sites_of(config)
    keys: dict[Key, None] = {}
    for wanted in listed(what, keep, HOW):
        name, block = key_of(wanted)
        everywhere = isinstance(wanted, str) and name in sites and sites[name].per_block
        blocks = range(config.n_layers) if everywhere else [block]
        keys |= dict.fromkeys(check_key(name, b, config) for b in blocks)
    return list(keys)
