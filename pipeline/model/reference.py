"""Reference: what a run of a golden case should do, as a person wrote it down (spec sections 4.1 and 9)."""

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Any

import msgspec


class Order(StrEnum):
    """How the calls of a run must lie to those of the reference. Optional calls may be left out everywhere."""

    EXACT = "exact"
    """The same calls in the same order."""
    IN_ORDER = "in_order"
    """The reference's calls in their order, others between them."""
    ANY = "any_order"
    """The same calls, in whatever order."""
    SUBSET = "subset"
    """Only calls of the reference, not all of them."""
    SUPERSET = "superset"
    """All calls of the reference, and others."""


class ReferenceCall(msgspec.Struct, frozen=True):
    """One call that should be made. Written twice it should be made twice."""

    tool: str
    arguments: Mapping[str, Any] | None = None
    """Every argument and its value; None where only the tool matters."""
    optional: bool = False
    """A call that may be made or left out, as reads often may."""
    ignored: frozenset[str] = frozenset()
    """Arguments that may have any value, or be absent."""
    within: Mapping[str, Decimal] = {}
    """The greatest difference of a number that is still equal, by argument."""
    sets: frozenset[str] = frozenset()
    """Arguments that are lists whose order and repeats do not matter."""
    alternatives: Mapping[str, tuple[Any, ...]] = {}
    """Other values that are as right, by argument."""


class Reference(msgspec.Struct, frozen=True):
    """The calls of a case, in rough order, and those that must not be made."""

    calls: tuple[ReferenceCall, ...] = ()
    forbidden: frozenset[str] = frozenset()
    order: Order = Order.ANY
    """What ``tool_call_accuracy`` asks of the calls together."""

    @property
    def required(self) -> tuple[ReferenceCall, ...]:
        """The calls that must not be left out."""
        return tuple(call for call in self.calls if not call.optional)


class MatcherKind(StrEnum):
    """How an answer is held against the expected one."""

    EQUALS = "equals"
    """Equal after NFC, case and space folding."""
    CONTAINS = "contains"
    """Holds it, after the same folding. A negated claim holds it too."""
    PATTERN = "pattern"
    """A pattern, as RE2 reads it, is found in the answer."""
    JSON = "json"
    """Equal as JSON: numbers by value, keys in any order."""
    NUMBER = "number"
    """A number within a tolerance."""


class Matcher(msgspec.Struct, frozen=True):
    """The expected answer, and how an answer is held against it. ``within`` belongs to numbers."""

    kind: MatcherKind
    expected: str
    within: Decimal = Decimal(0)
