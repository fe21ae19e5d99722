"""Rules of record checks: what was read of a source against the calls that it was read for.

A record is a call's by its identity. There must be one for each call, or as many as is written; no two alike; and what each says must hold.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from pipeline.model.evidence import Evidence, Found
from pipeline.model.step import ToolCall
from pipeline.scorers.calls import canonical, number
from pipeline.scorers.check import Missing
from pipeline.scorers.json_values import ABSENT, at, parsed
from pipeline.scorers.predicates import holds
from pipeline.scorers.reading import is_redacted, value_at
from pipeline.scorers.record_settings import RecordSettings

_DIGITS: Final = 30
"""Digits before the point, and after it, that an amount may have."""


def problems(settings: RecordSettings, calls: Sequence[ToolCall], evidence: Evidence) -> Iterator[str | Missing]:
    """Yield what is wrong, or missing to tell, in the order in which it is told."""
    records = _records(settings, evidence)
    if isinstance(records, Missing):
        yield records
        return
    for identity, some in _by_identity(settings, calls):
        if isinstance(identity, Missing):
            yield identity
            continue
        mine = _alike(records, identity)
        if isinstance(mine, Missing):
            yield mine
            continue
        yield from _of_count(settings, mine, some, _spoken(identity))
        yield from _of_duplicates(settings, mine)
        yield from _of_amounts(settings, mine, some)
        yield from _of_states(settings, mine)


def _records(settings: RecordSettings, evidence: Evidence) -> list[Any] | Missing:
    if evidence.found is Found.ABSENT:
        return []
    try:
        read = parsed(evidence.body)
    except ValueError:
        return Missing.RECORD_NOT_COMPARABLE
    value = at(read, settings.records) if settings.records else read
    if value is None:
        return []
    records = value if isinstance(value, list) else [value]
    return records if all(isinstance(one, dict) for one in records) else Missing.RECORD_NOT_COMPARABLE


def _by_identity(
    settings: RecordSettings, calls: Sequence[ToolCall]
) -> Iterator[tuple[dict[str, Any] | Missing, list[ToolCall]]]:
    groups: dict[Hashable, tuple[dict[str, Any] | Missing, list[ToolCall]]] = {}
    for call in calls:
        values = {field: value_at(call, path) for field, path in settings.identity.items()}
        missing = next((value for value in values.values() if isinstance(value, Missing)), None)
        if missing is None and any(map(is_redacted, values.values())):
            missing = Missing.ARGUMENTS_NOT_COMPARABLE
        groups.setdefault(missing or canonical(values), (missing or values, []))[1].append(call)
    yield from groups.values()


def _alike(records: Sequence[Any], identity: Mapping[str, Any]) -> list[Any] | Missing:
    """Return the records that have all of these values; one that lacks such a field could be anybody's."""
    if any(_is_unclear(at(record, field)) for record in records for field in identity):
        return Missing.RECORD_NOT_COMPARABLE
    return [one for one in records if all(canonical(at(one, field)) == canonical(value) for field, value in identity.items())]


def _of_count(settings: RecordSettings, mine: Sequence[Any], calls: Sequence[ToolCall], of: str) -> Iterator[str]:
    count = f"{len(mine) or 'no'} record{'' if len(mine) == 1 else 's'}{of}"
    if settings.count is not None:
        if not settings.count.allows(len(mine)):
            yield f"{settings.source} has {count}, and it must be {settings.count.spoken}"
    elif len(mine) != len(calls):
        made = f"{len(calls)} call{'' if len(calls) == 1 else 's'} of {settings.each} succeeded"
        yield f"{settings.source} has {count}, and {made}"


def _of_duplicates(settings: RecordSettings, mine: Sequence[Any]) -> Iterator[str | Missing]:
    if not settings.unique:
        return
    values = [tuple(at(record, field) for field in settings.unique) for record in mine]
    if any(_is_unclear(value) for some in values for value in some):
        yield Missing.RECORD_NOT_COMPARABLE
        return
    often = Counter(canonical(some) for some in values)
    twice = next((some for some in values if often[canonical(some)] > 1), None)
    if twice is not None:
        named = ", ".join(f"{field} {value}" for field, value in zip(settings.unique, twice, strict=True))
        yield f"{settings.source} has {often[canonical(twice)]} records with {named}"


def _of_amounts(settings: RecordSettings, mine: Sequence[Any], calls: Sequence[ToolCall]) -> Iterator[str | Missing]:
    """Yield the first call's amount that no record has; each record is of one call."""
    if settings.amount is None or not mine:
        return
    there = [_exact(at(record, settings.amount.field)) for record in mine]
    wanted = [_exact(value_at(call, settings.amount.equals)) for call in calls]
    if None in there:
        yield Missing.RECORD_NOT_COMPARABLE
    elif None in wanted:
        yield Missing.ARGUMENTS_NOT_COMPARABLE
    else:
        left = sorted(one for one in there if one is not None)
        for amount in sorted(one for one in wanted if one is not None):
            while left and left[0] < amount - settings.amount.within:
                left.pop(0)
            if not left or left[0] > amount + settings.amount.within:
                said = ", ".join(str(one) for one in there)
                yield f"{settings.source} says {settings.amount.field} {said}, the call {amount}"
                return
            left.pop(0)


def _of_states(settings: RecordSettings, mine: Sequence[Any]) -> Iterator[str | Missing]:
    for record in mine:
        for field, wanted in settings.state.items():
            value = at(record, field)
            if _is_unclear(value):
                yield Missing.RECORD_NOT_COMPARABLE
                continue
            answer = holds({field: wanted}, ToolCall(settings.source, arguments={field: value}))
            if isinstance(answer, Missing):
                yield Missing.RECORD_NOT_COMPARABLE
            elif not answer:
                yield f"{settings.source} says {field} {value}"


def _is_unclear(value: Any) -> bool:
    return value is ABSENT or is_redacted(value)


def _exact(value: Any) -> Decimal | None:
    exact = None if value is ABSENT or isinstance(value, Missing) else number(value)
    return exact if exact is None or abs(exact.adjusted()) <= _DIGITS else None


def _spoken(identity: Mapping[str, Any]) -> str:
    return f" of {', '.join(f'{field} {value}' for field, value in identity.items())}" if identity else ""
