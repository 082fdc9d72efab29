"""Added tokens as Hugging Face's files list them, in five places, and the ids that transformers gives."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gptviz.tokenizer import END_OF_TEXT
from gptviz.tokenizer.chat import NO_CHAT, Chat, read_chat
from gptviz.tokenizer.settings import (
    ADDED,
    ADDED_TOKENS_DECODER,
    ANEW,
    AS_IT_IS,
    FURTHER,
    NAMED,
    TOKENIZER_CLASS,
    check,
    check_config,
    check_known,
    names_a_token,
    shown,
)

TOKENIZER_CONFIG = "tokenizer_config.json"
SPECIAL_TOKENS_MAP = "special_tokens_map.json"
ADDED_TOKENS = "added_tokens.json"
BESIDE = (TOKENIZER_CONFIG, SPECIAL_TOKENS_MAP, ADDED_TOKENS)

# what GPT-2's class of transformers names where no file does
IMPLIED = ("bos_token", "eos_token", "unk_token")


@dataclass(frozen=True)
class Added:
    """A token that is looked up before anything is cut. `key` is where it is listed, for a sentence."""

    content: str
    special: bool
    normalized: bool
    key: str
    id: int | None = None  # as its list says; None where only its name is given


@dataclass(frozen=True)
class Beside:
    """The files beside a vocabulary, read and checked: `named` tokens by their keys, and the lists.

    `anew` says whether transformers makes the tokenizer anew, as GPT-2's class does.
    """

    where: Path
    anew: bool = True
    named: dict[str, Added] = field(default_factory=dict)
    further: list[Added] = field(default_factory=list)
    decoder: list[Added] | None = None  # of tokenizer_config.json
    old: list[Added] = field(default_factory=list)  # of added_tokens.json
    unnamed: tuple[str, ...] = IMPLIED  # the keys that no file has
    chat: Chat = NO_CHAT


@dataclass(frozen=True)
class AddedTokens:
    """What became of the lists: ids by name, and the kinds that a Vocabulary has."""

    ids: dict[str, int]
    words: frozenset[str]
    late: frozenset[str]
    implied: frozenset[str]


def read_beside(
    folder: Path, files: Mapping[str, Mapping[str, Any]], model_says: Any = None
) -> Beside:
    """Check the files beside a vocabulary and take them in, as transformers does.

    `files` are those of BESIDE that there are. `model_says` is the class that config.json names. Raises
    ValueError for a key that cannot be followed.
    """
    config = files.get(TOKENIZER_CONFIG, {})
    special = files.get(SPECIAL_TOKENS_MAP, {})
    check_config(folder / TOKENIZER_CONFIG, config)
    check_config(folder / SPECIAL_TOKENS_MAP, special)
    anew = _is_made_anew(folder, config.get(TOKENIZER_CLASS) or model_says)
    decoder = None
    if ADDED_TOKENS_DECODER in config:
        decoder = _by_id(folder / TOKENIZER_CONFIG, config[ADDED_TOKENS_DECODER])
    if ADDED_TOKENS_DECODER in special:
        raise ValueError(
            f'{folder / SPECIAL_TOKENS_MAP}: "{ADDED_TOKENS_DECODER}" belongs into {TOKENIZER_CONFIG}'
        )
    named, further = _names_of(folder / TOKENIZER_CONFIG, config)
    more_named, more_further = _names_of(folder / SPECIAL_TOKENS_MAP, special)
    unnamed = tuple(key for key in IMPLIED if key not in config)
    if decoder is None:
        named |= more_named
        unnamed = tuple(key for key in unnamed if key not in special)
        if more_further:
            _check_one_list(folder / SPECIAL_TOKENS_MAP, further, more_further)
            further = more_further
    else:  # then transformers does not read the other file
        known = {token.content for token in [*decoder, *named.values(), *further]}
        for token in [*more_named.values(), *more_further]:
            if token.content not in known:
                raise ValueError(
                    f"{folder / SPECIAL_TOKENS_MAP}: {token.content!r} is in no list of {TOKENIZER_CONFIG}, "
                    f'whose "{ADDED_TOKENS_DECODER}" is read instead. Add it there, or take it out'
                )
    specials = {token.content for token in [*named.values(), *further]}
    old = _old(folder / ADDED_TOKENS, files.get(ADDED_TOKENS, {}), specials)
    names = {key: token.content for key, token in named.items()}
    if anew:
        names |= dict.fromkeys(unnamed, END_OF_TEXT)
    chat = read_chat(folder, config, names)
    return Beside(folder, anew, named, further, decoder, old, unnamed, chat)


def with_ids(
    path: Path, beside: Beside, listed: list[Any], tokens: Mapping[str, int]
) -> AddedTokens:
    """The ids that transformers gives to all added tokens: their own where the vocabulary has them, else new.

    `listed` are those of tokenizer.json, `tokens` the vocabulary. Raises ValueError where two lists differ,
    or a list gives another id than transformers does.
    """
    own_tokens = [_added(path, token, "added_tokens") for token in listed]
    claimed = _claimed(path, beside, own_tokens)
    implied = [Added(END_OF_TEXT, True, False, key) for key in beside.unnamed if beside.anew]
    ordered = _in_order(beside, claimed, implied)
    ids: dict[str, int] = {}
    following = len(tokens)
    for token in ordered:
        token_id = tokens.get(token.content, following)
        following = max(following, token_id + 1)
        if token.id is not None and token.id != token_id:
            raise ValueError(
                f'{path}: "{token.key}" gives {token.content!r} the id {token.id}, and transformers gives it '
                f"{token_id}: its id in the vocabulary, or else the next one behind all others. "
                "Correct the list"
            )
        ids[token.content] = token_id
    brought = {token.content for token in [*claimed, *beside.named.values(), *beside.further]}
    late = {token.content for token in ordered if token.normalized}
    return AddedTokens(
        ids,
        words=frozenset(token.content for token in ordered if not token.special),
        late=frozenset(late),
        implied=frozenset(ids.keys() - brought - tokens.keys()),
    )


def _in_order(beside: Beside, claimed: list[Added], implied: list[Added]) -> list[Added]:
    """All added tokens in the order in which transformers gives them ids; those with a name are special."""
    named = {token.content for token in [*beside.named.values(), *implied]}
    if beside.anew:
        first = sorted(claimed, key=lambda token: token.id or 0)
    else:
        first = claimed
    ordered = [replace(token, special=True) if token.content in named else token for token in first]
    known = {token.content for token in ordered}
    by_key = {token.key: token for token in implied} | beside.named
    for token in [*(by_key[key] for key in NAMED if key in by_key), *beside.further]:
        if token.content not in known:
            ordered.append(token)
            known.add(token.content)
    for key, token in beside.named.items():
        if token.content not in known:  # its key is none of NAMED, and versions differ
            raise ValueError(
                f'{beside.where}: "{key}" is {token.content!r}, a token that no list gives an id. '
                "Add it to added_tokens.json, or take it out"
            )
    return ordered


def _claimed(path: Path, beside: Beside, own_tokens: list[Added]) -> list[Added]:
    """The tokens of all lists, each once. Raises ValueError where two lists differ."""
    first = own_tokens
    other_tokens = [*(beside.decoder or []), *beside.old]
    if beside.decoder is not None and beside.anew:
        first = beside.decoder
        other_tokens = [*own_tokens, *beside.old]
    claimed = {token.content: token for token in first}
    if len(claimed) < len(first):
        raise ValueError(f'{path}: "{first[0].key}" has an added token twice: let it be there once')
    complete = beside.decoder is not None and beside.anew  # transformers reads no other list then
    for token in other_tokens:
        known = claimed.get(token.content)
        if known is None and not complete:
            claimed[token.content] = token
            continue
        if (
            known is None
            or known.id != token.id
            or (token.key != ADDED_TOKENS and not _alike(known, token))
        ):
            if known is None:
                other = "has no such token"
            else:
                other = f'has it otherwise ("{known.key}")'
            raise ValueError(
                f'{beside.where}: "{token.key}" has {token.content!r} with the id {token.id}, and another '
                f"list {other}. Let the lists of added tokens say the same"
            )
    return list(claimed.values())


def _alike(token: Added, other: Added) -> bool:
    return (token.special, token.normalized) == (other.special, other.normalized)


def _is_made_anew(folder: Path, name: Any) -> bool:
    if name in AS_IT_IS:
        return False
    if name is None or name in ANEW:
        return True
    raise ValueError(
        f'{folder}: "{TOKENIZER_CLASS}" is {shown(name)}, a class that may cut texts in its own way. Known '
        f"are {', '.join([*ANEW, *AS_IT_IS])}: name one of them if the model was trained with it"
    )


def _names_of(path: Path, values: Mapping[str, Any]) -> tuple[dict[str, Added], list[Added]]:
    """The tokens that a file names by keys of their own, and those of its list of further ones."""
    named = {
        key: _added(path, value, key, special=True)
        for key, value in values.items()
        if names_a_token(key, value) and value is not None
    }
    lists: list[list[Added]] = []
    for key in FURTHER:
        listed = values.get(key)
        if isinstance(listed, dict):
            named |= {
                name: _added(path, token, name, special=True) for name, token in listed.items()
            }
        elif isinstance(listed, list):
            lists.append([_added(path, token, key, special=True) for token in listed])
        elif listed is not None:
            raise ValueError(f'{path}: "{key}" is {shown(listed)}; expected a list of tokens')
    for further in lists[1:]:
        _check_one_list(path, lists[0], further)
    return named, lists[0] if lists else []


def _check_one_list(path: Path, first: list[Added], second: list[Added]) -> None:
    if first and [token.content for token in first] != [token.content for token in second]:
        raise ValueError(
            f'{path}: "{second[0].key}" has other tokens than "{first[0].key}". Let both lists say the same'
        )


def _by_id(path: Path, decoder: Any) -> list[Added]:
    """The tokens of "added_tokens_decoder": ids to tokens."""
    if not isinstance(decoder, dict) or not all(key.isascii() and key.isdigit() for key in decoder):
        raise ValueError(
            f'{path}: "{ADDED_TOKENS_DECODER}" is {shown(decoder)}; expected ids with tokens'
        )
    tokens = [(int(id), token) for id, token in decoder.items()]
    return [replace(_added(path, token, ADDED_TOKENS_DECODER), id=id) for id, token in tokens]


def _old(path: Path, values: Mapping[str, Any], specials: set[str]) -> list[Added]:
    """The tokens of added_tokens.json: names with ids."""
    tokens = []
    for content, id in values.items():
        if type(id) is not int or id < 0 or not content:
            raise ValueError(
                f"{path}: {content!r} has the id {id!r}; expected a whole number from 0 on"
            )
        special = content in specials
        tokens.append(Added(content, special, not special, ADDED_TOKENS, id))
    return tokens


def _added(path: Path, token: Any, key: str, special: bool = False) -> Added:
    """One token, as a text or as an object. Raises ValueError for a key of it that cannot be followed."""
    if isinstance(token, str):
        token = {"content": token, "special": True}
    if (
        not isinstance(token, dict)
        or not isinstance(token.get("content"), str)
        or not token["content"]
    ):
        raise ValueError(f'{path}: "{key}" has {shown(token)}; expected a token with its "content"')
    part = f"{key}: {token['content'][:40]}: "
    check(path, token, ADDED, part)
    check_known(path, token, {*ADDED, "content", "id", "special", "normalized", "__type"}, part)
    is_special = special or token.get("special", False)
    normalized = token.get("normalized", not is_special)
    for name, value in {"special": is_special, "normalized": normalized}.items():
        if not isinstance(value, bool):
            raise ValueError(f'{path}: "{part}{name}" is {shown(value)}; expected true or false')
    id = token.get("id")
    if id is not None and (type(id) is not int or id < 0):
        raise ValueError(
            f"{path}: {token['content']!r} has the id {id!r}; expected a whole number from 0 on"
        )
    return Added(token["content"], is_special, normalized, key, id)
