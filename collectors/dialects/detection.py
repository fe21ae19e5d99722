"""Detection: whose a span is, and by which mark. A scope tells before any attribute, and a whole name before the beginning of one.

It is asked of every span, and a service's spans have few sets of attributes: what to ask of a set is worked out once, whatever the number of
dialects.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from collectors.dialects.dialect import Dialect
from pipeline.model.span import Attributes, Span

_MANY: Final = 1000
"""Scopes, and sets of attributes, that are remembered. A fleet of services has hundreds; senders could make up any number."""
_WIDE: Final = 64
"""Attributes of a set that is worth remembering: more of them are indexed, and no two conversations have the same."""


class Detected(NamedTuple):
    """Whose a span is. ``rule`` says by which mark, in words."""

    dialect: Dialect
    rule: str


class _Plan(NamedTuple):
    """What to ask of spans with the same attributes: which values make them somebody's, and whose they are otherwise."""

    values: tuple[tuple[str, dict[str, Detected]], ...]
    otherwise: Detected | None


class Detector:
    """Tells dialects apart by their marks. Where two dialects have a mark, it is the first one's."""

    def __init__(self, dialects: Iterable[Dialect]) -> None:
        self._scopes: dict[str, Detected | None] = {}
        self._scope_beginnings: list[tuple[str, Detected]] = []
        self._names: dict[str, tuple[dict[str, Detected], list[Detected]]] = {}
        """By an attribute's name: whose it is by its value, and whose it is whatever its value."""
        self._beginnings: list[tuple[str, Detected]] = []
        self._plans: dict[tuple[str, ...], _Plan] = {}
        for dialect in dialects:
            for scope in dialect.marks.scopes:
                self._add_scope(scope, dialect)
            for attribute in dialect.marks.attributes:
                self._add_attribute(attribute, dialect)

    def _add_scope(self, mark: str, dialect: Dialect) -> None:
        if mark.endswith("*"):
            self._scope_beginnings.append((mark[:-1], Detected(dialect, f"scope.name begins with {mark[:-1]}")))
        else:
            self._scopes.setdefault(mark, Detected(dialect, f"scope.name is {mark}"))

    def _add_attribute(self, mark: str, dialect: Dialect) -> None:
        name, equals, value = mark.partition("=")
        if mark.endswith("*"):
            self._beginnings.append((mark[:-1], Detected(dialect, f"an attribute begins with {mark[:-1]}")))
            return
        by_value, of_any = self._names.setdefault(name, ({}, []))
        if equals:
            by_value.setdefault(value, Detected(dialect, f"{name} is {value}"))
        else:
            of_any.append(Detected(dialect, f"it has {name}"))

    def detect(self, span: Span) -> Detected | None:
        """Return whose the span is; None where no dialect knows it."""
        scope, attributes = span.scope_name, span.attributes
        found = self._scopes[scope] if scope in self._scopes else self._of_scope(scope)
        if found is not None:
            return found
        names = tuple(attributes)
        plan = self._plans.get(names) or self._plan(names, attributes)
        for name, by_value in plan.values:
            said = attributes[name]
            if isinstance(said, str) and said in by_value:
                return by_value[said]
        return plan.otherwise

    def _of_scope(self, scope: str) -> Detected | None:
        found = next((detected for beginning, detected in self._scope_beginnings if scope.startswith(beginning)), None)
        if len(self._scopes) < _MANY:
            self._scopes[scope] = found
        return found

    def _plan(self, names: tuple[str, ...], attributes: Attributes) -> _Plan:
        plan = self._planned(attributes)
        if len(names) <= _WIDE:
            if len(self._plans) >= _MANY:
                self._plans.clear()
            self._plans[names] = plan
        return plan

    def _planned(self, attributes: Attributes) -> _Plan:
        values: list[tuple[str, dict[str, Detected]]] = []
        for name in filter(attributes.__contains__, self._names):
            by_value, of_any = self._names[name]
            if by_value:
                values.append((name, by_value))
            if of_any:
                return _Plan(tuple(values), of_any[0])
        begun = (detected for beginning, detected in self._beginnings if any(name.startswith(beginning) for name in attributes))
        return _Plan(tuple(values), next(begun, None))
