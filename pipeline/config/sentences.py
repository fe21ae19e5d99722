"""A sentence for each kind of error that pydantic knows: what is wrong, and what to write instead."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from pipeline.config.fault import RANGES, Fault
from pipeline.config.keys import keys
from pipeline.config.mistake import nearest, spoken


def sentence(faults: Sequence[Fault]) -> str:
    """Return what is wrong and what to write instead, without where it stands. Several faults are of one value that may be several things."""
    fault = faults[0]
    told = _SENTENCES.get(fault.type)
    if told is not None:
        return told(fault)
    if fault.type in RANGES:
        return _out_of_range(fault)
    wanted = dict.fromkeys(word for one in faults for part, word in _TYPES if one.type.startswith(part))
    if wanted:
        return _wrong_type(fault, tuple(wanted))
    example = f"; write for example {fault.example}" if fault.example else ""
    return f"{fault.shown} is not allowed: {fault.message[:1].lower()}{fault.message[1:]}{example}"


def _unknown_key(fault: Fault) -> str:
    known = ", ".join(fault.siblings)
    if near := nearest(fault.key, fault.siblings):
        return f"unknown key{near} Known here: {known}"
    homes = {spoken(one.location[:-1]) or "the top" for one in keys(fault.model) if one.location[-1] == fault.key}
    moved = f"it belongs under {' or '.join(sorted(homes))}; " if len(homes) in (1, 2) else ""
    return f"unknown key; {moved}known here: {known}"


def _missing(fault: Fault) -> str:
    meaning = f" ({fault.meaning})" if fault.meaning else ""
    return f"is missing{meaning}; write `{fault.key}: {' or '.join(fault.allowed) or fault.example or '…'}`"


def _not_one_of(fault: Fault) -> str:
    allowed = fault.allowed or [str(fault.context.get("expected", ""))]
    return f"{fault.shown} is not one of {', '.join(allowed)}{nearest(fault.shown, allowed) or '; write one of these'}"


def _unknown_kind(fault: Fault) -> str:
    key, kind = str(fault.context["discriminator"]).strip("'"), str(fault.context["tag"])
    return f"`{key}: {kind}` is not one of {', '.join(fault.kinds)}{nearest(kind, fault.kinds) or '; write one of these'}"


def _no_kind(fault: Fault) -> str:
    key = str(fault.context["discriminator"]).strip("'")
    *others, last = (f"`{key}: {kind}`" for kind in fault.kinds)
    return f"has no `{key}`; write {' or '.join(filter(None, (', '.join(others), last)))}"


def _too_short(fault: Fault) -> str:
    least = fault.context.get("min_length", 1)
    if not fault.input:
        return f"is empty; write {fault.example or 'at least one' if fault.type == 'too_short' else fault.example or 'a text'}"
    return f"{fault.shown} is too short; write at least {least}"


def _too_long(fault: Fault) -> str:
    return f"{fault.shown} is too long; write at most {fault.context.get('max_length', 0)}"


def _pattern(fault: Fault) -> str:
    example = f", as {fault.example} does" if fault.example else ""
    return f"{fault.shown} is not a name that can be used here; write one that fits {fault.context.get('pattern', '')}{example}"


def _out_of_range(fault: Fault) -> str:
    limits = fault.limits
    low, high = limits.get("ge", limits.get("gt")), limits.get("le", limits.get("lt"))
    if (low, high) == (0, 1):
        return f"{fault.shown} is not between 0 and 1; write a share such as 0.2"
    if low is not None and high is not None:
        return f"{fault.shown} is not between {_plain(low)} and {_plain(high)}; write a number in this range{_such_as(fault)}"
    if low is not None:
        return f"{fault.shown} is too small; write {f'more than {_plain(low)}' if 'gt' in limits else f'{_plain(low)} or more'}{_such_as(fault)}"
    return f"{fault.shown} is too large; write {f'less than {_plain(high)}' if 'lt' in limits else f'{_plain(high)} or less'}{_such_as(fault)}"


def _plain(limit: Any) -> str:
    return str(limit) if isinstance(limit, int) else f"{limit:g}"


def _such_as(fault: Fault) -> str:
    return f", such as {fault.example}" if fault.example else ""


def _wrong_type(fault: Fault, wanted: tuple[str, ...]) -> str:
    if fault.input is None:
        return f"is empty; write {_instead(fault, wanted)}, or remove the key"
    return f"{fault.shown} is not {_or(wanted)}; write {_instead(fault, wanted)}"


def _instead(fault: Fault, wanted: tuple[str, ...]) -> str:
    plain = isinstance(fault.input, str | int | float)
    if _TEXT in wanted and plain:
        return "it in quotes" if fault.secret else f'"{fault.shown}"'
    if wanted == (_LIST,):
        return f"[{fault.shown}]" if plain else "each item on a line of its own after `- `"
    if wanted == (_MAPPING,):
        return f"its keys one to a line below it{f': {known}' if (known := ', '.join(fault.parts)) else ''}"
    return f"{_or(wanted)}{_such_as(fault)}"


def _or(words: tuple[str, ...]) -> str:
    return " or ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)


def _own_words(fault: Fault) -> str:
    return fault.message if fault.input is not None else f"is empty; {fault.message.partition('; ')[2] or fault.message}"


_TEXT: Final = "text"
_LIST: Final = "a list"
_MAPPING: Final = "a mapping"
_TYPES: Final = (
    ("string_", _TEXT),
    ("int_", "a whole number"),
    ("float_", "a number"),
    ("decimal_", "a number"),
    ("finite_number", "a finite number"),
    ("bool_", "true or false"),
    ("list_type", _LIST),
    ("tuple_type", _LIST),
    ("set_type", _LIST),
    ("dict_type", _MAPPING),
    ("mapping_type", _MAPPING),
    ("model_", _MAPPING),
    ("path_type", "a path"),
)
"""What pydantic's errors want, by how their names begin."""
_SENTENCES: Final[dict[str, Callable[[Fault], str]]] = {
    "extra_forbidden": _unknown_key,
    "missing": _missing,
    "enum": _not_one_of,
    "literal_error": _not_one_of,
    "union_tag_invalid": _unknown_kind,
    "union_tag_not_found": _no_kind,
    "value_error": _own_words,
    "string_too_short": _too_short,
    "too_short": _too_short,
    "string_too_long": _too_long,
    "too_long": _too_long,
    "string_pattern_mismatch": _pattern,
}
