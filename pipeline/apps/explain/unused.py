"""Attributes that made no difference: without them a span reads the same. Reading is pure, so it is simply tried."""

from collections import defaultdict
from collections.abc import Callable, Iterable

import msgspec

from collectors.dialects.attributes import indexed
from pipeline.model.span import Attributes, Span
from pipeline.model.step import Step, StepKind


class Unused(msgspec.Struct, frozen=True):
    """An attribute that no span of a dialect was read by; ``N`` in its name stands for any index. ``spans`` is how many have it."""

    dialect: str
    attribute: str
    spans: int


def unused(spans: Iterable[Span], read: Callable[[Span], Step]) -> tuple[Unused, ...]:
    """Return what made no difference, by dialect and name. Of two attributes that say the same one is enough, and the other is unused."""
    with_it: dict[tuple[str, str], int] = defaultdict(int)
    used: dict[str, set[str]] = defaultdict(set)
    for span in spans:
        step = read(span)
        if not step.dialect or step.kind is StepKind.IGNORED:
            continue
        known = used[step.dialect]
        for name in _tried(span, step, read, known):
            with_it[step.dialect, name] += 1
    return tuple(Unused(dialect, name, count) for (dialect, name), count in sorted(with_it.items()) if name not in used[dialect])


def _tried(span: Span, step: Step, read: Callable[[Span], Step], known: set[str]) -> list[str]:
    """Return the names without which the span reads the same, all of them left out at once, and note the others as ``known``."""
    named: dict[str, list[str]] = defaultdict(list)
    for name in span.attributes:
        named[indexed(name)].append(name)
    left: Attributes = dict(span.attributes)
    without: list[str] = []
    for name in sorted(named.keys() - known):
        rest = {key: value for key, value in left.items() if key not in named[name]}
        if read(msgspec.structs.replace(span, attributes=rest)) == step:
            left = rest
            without.append(name)
        else:
            known.add(name)
    return without
