"""The table of sites: every place in a model whose numbers can be captured or replaced.

A site has a name, such as "attn" for attention weights; most sites exist once in every block. A key names one
place: the site and its block, such as ("attn", 3), or ("embed", None) outside the blocks. The capture, the
edits, the documentation and the tests all read this table, so that a new row in it is all that a new site
needs. The rows are in `engine/architecture.py`, and `engine/site.py` says what a row means.
"""

from collections.abc import Iterable

from gptviz.engine.architecture import GPT2, architecture_of
from gptviz.engine.config import GPTConfig
from gptviz.engine.index import index_of, listed
from gptviz.engine.site import Key, Site
from gptviz.text.suggest import did_you_mean

# A trace of at most this many bytes holds every site; that costs less than running a block once more.
SMALL = 2**24

INTO_BLOCK = "resid_pre"  # the input of a block, from which it can be run once more

SITES: dict[str, Site] = dict(GPT2.sites)


def all_keys(config: GPTConfig) -> list[Key]:
    """Every (site, block) that a model of this size has, in the order of the forward pass."""
    sites = list(architecture_of(config).sites.values())
    in_block = [site.name for site in sites if site.per_block]
    outside = [site.name for site in sites if not site.per_block]
    blocks = [(name, b) for b in range(config.n_layers) for name in in_block]
    # the output of the last norm comes after all blocks
    before: list[Key] = [(name, None) for name in outside[:-1]]
    return [*before, *blocks, (outside[-1], None)]


def held_keys(config: GPTConfig, n_tokens: int, at_once: Iterable[str | Key] = ()) -> list[Key]:
    """The keys that a trace of all sites holds: every key, if they take no more bytes than `SMALL`.

    Otherwise the trace is lean: it holds what the other sites can be computed from (the input, keys and
    values of each block, the output of the last one, and the sites outside the blocks), and `at_once`.
    """
    keys = all_keys(config)
    last = config.n_layers - 1
    keys_held = dict.fromkeys(expand(at_once, config, "at_once"))
    if 4 * sum(SITES[site].floats(n_tokens, config) for site, _ in keys) <= SMALL:
        return keys
    for key in keys:
        site, block = key
        if (
            block is None
            or SITES[site].in_past
            or site == INTO_BLOCK
            or key == ("resid_post", last)
        ):
            keys_held[key] = None
    return list(keys_held)


def between_blocks(config: GPTConfig) -> list[tuple[Key, Key]]:
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


def check_key(site: str, block: object, n_layers: int | None) -> Key:
    """The key of a site and a block, with a negative block counted from 0.

    Raises ValueError, which lists what there is, if a model of `n_layers` blocks has no such place. With None
    for `n_layers`, only the site and whether it needs a block are checked.
    """
    if not isinstance(site, str) or site not in SITES:
        raise ValueError(
            f"there is no site {site!r}{did_you_mean(site, SITES)}; the sites are {', '.join(SITES)}"
        )
    if not SITES[site].per_block:
        if block is not None:
            raise ValueError(
                f"site {site!r} is outside the blocks; ask for it without the block {block!r}"
            )
        return site, None
    if block is None:
        if n_layers is None:
            there_are = ""
        else:
            there_are = f", from 0 to {n_layers - 1}"
        raise ValueError(f"site {site!r} needs a block{there_are}")
    return site, index_of("block", block, n_layers)


def expand(keep: Iterable[str | Key] | None, config: GPTConfig, what: str = "keep") -> list[Key]:
    """Turn `keep` into a list of keys: None is every key, the name of a site is that site in every block."""
    if keep is None:
        return all_keys(config)
    keys: dict[Key, None] = {}
    for wanted in listed(what, keep, 'give a list of sites, such as ["z", ("attn", 3)]'):
        name, block = key_of(wanted)
        everywhere = isinstance(wanted, str) and name in SITES and SITES[name].per_block
        blocks = range(config.n_layers) if everywhere else [block]
        keys |= dict.fromkeys(check_key(name, b, config.n_layers) for b in blocks)
    return list(keys)
