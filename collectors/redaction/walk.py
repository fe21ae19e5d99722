"""The walk: through names and values, however deep, of which it is known what may hold something."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from collectors.redaction.names import is_count, names_a_secret
from collectors.redaction.texts import HOLD_TEXT, LARGE, bytes_in, text_of
from pipeline.config.redaction import FAILED, Detector
from pipeline.model.span import Attributes

Counts: TypeAlias = Counter[str]
"""How often something was replaced, by detector or rule; what could not be redacted is under :data:`FAILED`."""


class _Values(Protocol):
    """Who redacts the values under a name."""

    def value(self, value: Any, counts: Counts, depth: int = 0) -> Any: ...


class NameRules(NamedTuple):
    """What names say of the values under them. Each such name is itself one of the texts that may hold something."""

    by_name: bool = True
    """Whether names such as ``password`` tell of secrets."""
    whole: Mapping[str, str] = {}
    """Which rules take whole values."""
    under: Mapping[str, _Values] = {}
    """Who redacts the values under some names."""

    def rule_of(self, name: str) -> str | None:
        """Return the rule that takes the whole value under a name."""
        rule = self.whole.get(name)
        return Detector.SECRET_NAME if rule is None and self.by_name and names_a_secret(name) else rule


class Walk:
    """Goes through what was looked at together. ``suspicious`` are the texts in which there may be something; no other is looked at.

    It is None where there was no time to see which these are. Then all texts are replaced, and whatever holds some as a whole.
    """

    def __init__(
        self,
        suspicious: frozenset[str] | None,
        redact: Callable[[str, Counts, int], str],
        rules: NameRules,
        counts: Counts,
        depth: int,
    ) -> None:
        """Take what redacts a suspicious text; what is replaced is added to the ``counts``."""
        self._suspicious: Final = suspicious or frozenset()
        self._all: Final = suspicious is None
        self._redact: Final = redact
        self._rules: Final = rules
        self._counts: Final = counts
        self._depth: Final = depth
        self._known: Final[dict[str, tuple[str, Counts]]] = {}
        """What suspicious texts came to: the same one may stand there a hundred thousand times."""

    def text(self, text: str) -> str:
        """Return text without secrets."""
        if self._all and text:
            return self._failed()
        return self._clean(text) if text in self._suspicious else text

    def _clean(self, text: str) -> str:
        known = self._known.get(text)
        if known is None:
            inside: Counts = Counter()
            known = self._known[text] = self._redact(text, inside, self._depth), inside
        clean, inside = known
        self._counts.update(inside)
        return clean if inside or clean != text else text

    def value(self, value: Any) -> Any:
        """Return the value of an attribute without secrets, however deep they are."""
        kind = type(value)
        if kind is str:
            return self.text(value)
        if kind is int:
            return value if -LARGE < value < LARGE else self._number(value)
        if kind not in HOLD_TEXT or not value:
            return value
        if self._all:
            return self._failed()
        if kind is list:
            return self._list(value)
        raw = bytes_in(value)
        return self.attributes(value) if raw is None else self._bytes(value, raw)

    def attributes(self, attributes: Attributes) -> Attributes:
        """Return attributes without secrets in their names or values."""
        if self._all and attributes:
            return {self._failed(): FAILED}
        if self._suspicious.isdisjoint(attributes):
            changed = {name: new for name, value in attributes.items() if (new := self.value(value)) is not value}
            return {**attributes, **changed} if changed else attributes
        return self._renamed(attributes)

    def _renamed(self, attributes: Attributes) -> Attributes:
        names = {name: self.text(name) for name in attributes}
        values = {name: self._under(name, value) for name, value in attributes.items()}
        if all(name is clean for name, clean in names.items()):
            return attributes if _same(values.values(), attributes.values()) else values
        clean: Attributes = {}
        taken: defaultdict[str, int] = defaultdict(lambda: 1)
        # Two names may have become one; which of them is the second must not depend on the order they came in.
        for name in sorted(names):
            free = names[name]
            while free in clean:
                taken[names[name]] += 1
                free = f"{names[name]} {taken[names[name]]}"
            clean[free] = values[name]
        return clean

    def _failed(self) -> str:
        self._counts[FAILED] += 1
        return FAILED

    def _list(self, values: list[Any]) -> list[Any]:
        if HOLD_TEXT.isdisjoint(map(type, values)):
            return values
        clean = [self.value(one) for one in values]
        return values if _same(clean, values) else clean

    def _number(self, value: int) -> Any:
        written = str(value)
        said = self.text(written)
        return value if said is written else said

    def _bytes(self, value: Attributes, raw: bytes) -> Any:
        """Return bytes as they are, or a marker in place of all of them."""
        text = text_of(raw)
        inside: Counts = Counter()
        if text not in self._suspicious or self._redact(text, inside, self._depth) is text:
            return value
        self._counts.update(inside)
        return FAILED if FAILED in inside else f"[redacted:{next(iter(inside))}]"

    def _under(self, name: str, value: Any) -> Any:
        rule = self._rules.rule_of(name)
        if rule is None:
            other = self._rules.under.get(name)
            return self.value(value) if other is None else other.value(value, self._counts, self._depth)
        marker = f"[redacted:{rule}]"
        if value is None or isinstance(value, bool) or value in ("", [], {}, marker, FAILED) or is_count(name, value):
            return value
        self._counts[rule] += 1
        return marker


def _same(some: Iterable[Any], others: Iterable[Any]) -> bool:
    return all(one is other for one, other in zip(some, others, strict=True))
