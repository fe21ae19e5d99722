"""The redactor: text and attribute values in, the same out, without what must not be stored."""

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Final

from collectors.redaction.allowance import (
    ESCAPE,
    READ_BYTE,
    READ_VALUE,
    SUSPECT,
    TEXT,
    TOGETHER,
    UNLIMITED,
    Allowance,
    SpentError,
)
from collectors.redaction.finder import Finder
from collectors.redaction.hints import bytes_of, joined
from collectors.redaction.json_text import may_be_json, redact_json, unescaped
from collectors.redaction.names import NAME_HINT, NAME_IN_BYTES
from collectors.redaction.otlp_bytes import named_in
from collectors.redaction.scan import Found, Scan, whole_escapes
from collectors.redaction.texts import texts_in, texts_of
from collectors.redaction.walk import Counts, NameRules, Walk
from pipeline.config.redaction import FAILED
from pipeline.model.span import Attributes
from pipeline.patterns import escaped

_DEPTH: Final = 8
"""JSON inside of JSON is opened so often."""
_PASSES: Final = 4
_MANY: Final = 64
"""Texts that are looked at together, from which on it pays to look at equal ones once."""


class Redactor:
    """Replaces what must not be stored by markers such as ``[redacted:email]``; what needs no change is returned as the same object.

    It has no state: what it counts it adds to the ``counts`` that it is given. Redacting twice is redacting once. Only what
    :meth:`for_request` returns knows how much it has done, and replaces whole what is suspicious once that was enough.
    """

    _allowance = UNLIMITED

    def __init__(
        self,
        finders: Sequence[Finder],
        *,
        by_name: bool = True,
        whole: Mapping[str, str] | None = None,
        under: "Mapping[str, Redactor] | None" = None,
        rules: bool = False,
    ) -> None:
        """Take what to look for.

        ``by_name`` says whether names such as ``password`` tell of secrets, ``whole`` which rules take whole values, by the values' names,
        and ``under`` who redacts the values under some names. With ``rules`` finders may be patterns of users.
        """
        self._under = under or {}
        self._names = NameRules(by_name, whole or {}, self._under)
        names = [escaped(name) for name in (*self._names.whole, *self._names.under)]
        hints = [rf"(?m)^{name}$|\"{name}\\*\"" for name in names]
        self._scan: Final = Scan(
            finders,
            [*hints, NAME_HINT] if by_name else hints,
            [*names, NAME_IN_BYTES] if by_name else names,
            through_escapes=rules,
        )

    def for_request(self, allowance: Allowance | None = None) -> "Redactor":
        """Return the same for all that one request holds."""
        own = copy(self)
        own._allowance = shared = allowance or Allowance()  # noqa: SLF001 - of its own class
        own._under = {name: one.for_request(shared) for name, one in self._under.items()}  # noqa: SLF001
        own._names = self._names._replace(under=own._under)  # noqa: SLF001
        return own

    def suspects(self, texts: Sequence[str]) -> bool:
        """Whether there may be anything to replace in any of these texts: one quick pass, and where it says no nothing else is needed."""
        return self._scan.suspects(joined(texts))

    def suspects_message(self, raw: bytes) -> bool:
        """Whether there may be anything to replace in a message of protobuf: one quick pass over its bytes, without reading it."""
        return self._scan.suspects_message(raw)

    def text(self, text: str, counts: Counts) -> str:
        """Return text without secrets. JSON stays JSON; one for which a detector raises, or the allowance ends, is replaced whole."""
        return self._suspicious(text, counts, 0) if text and self.suspects((text,)) else text

    def value(self, value: Any, counts: Counts, depth: int = 0) -> Any:
        """Return the value of an attribute without secrets, however deep they are."""
        walk = self.look(texts_in(value), counts, depth)
        return value if walk is None else walk.value(value)

    def attributes(self, attributes: Attributes, counts: Counts) -> Attributes:
        """Return attributes without secrets in their names or values."""
        walk = self.look(texts_of(attributes), counts)
        return attributes if walk is None else walk.attributes(attributes)

    def look(self, texts: Sequence[str], counts: Counts, depth: int = 0) -> Walk | None:
        """Look at all texts of some values together, and return what goes through those; None where there is nothing to replace."""
        suspicious: frozenset[str] | None = None
        if len(texts) > _MANY:  # a list of one number is one text
            texts = list(dict.fromkeys(texts))
        try:
            if depth:
                self._allowance.take(TEXT + len(texts) * TOGETHER)
            places = self._scan.suspicious(texts, self._allowance)
            if not places:
                return None
            if not depth:
                self._allowance.overdraw(TEXT + len(texts) * TOGETHER)
            suspicious = frozenset([texts[place] for place in places if texts[place]])
        except SpentError:
            if depth:
                raise  # of half-read JSON nothing is kept
        return Walk(suspicious, self._suspicious, self._names, counts, depth)

    def mask(self, raw: bytes) -> bytes:
        """Return bytes that nobody can read as anything, with what looks like a secret overwritten in its place: the length is kept."""
        masked = bytearray(raw)
        try:
            regions = [(one.start, one.end) for one in self._scan.find(raw, allowance=Allowance())]
            regions += named_in(raw) if self._names.by_name else ()
        except Exception:  # noqa: BLE001 - as for text: what cannot be looked through is not kept
            regions = [(0, len(raw))]
        for start, end in regions:
            masked[start:end] = b"*" * (end - start)
        return bytes(masked)

    def _suspicious(self, text: str, counts: Counts, depth: int) -> str:
        try:
            self._allowance.take(SUSPECT)
            as_json = self._in_json(text, counts, depth) if depth < _DEPTH and may_be_json(text) else None
            return self._plain(text, counts) if as_json is None else as_json
        except RecursionError:
            raise
        except SpentError:
            if depth:
                raise
            counts[FAILED] += 1
            return FAILED
        except Exception:  # noqa: BLE001 - whatever a detector raises must neither lose the span nor let the value pass
            counts[FAILED] += 1
            return FAILED

    def _in_json(self, text: str, counts: Counts, depth: int) -> str | None:
        """Return JSON without secrets; None where the text is none."""
        self._allowance.take(len(text) * READ_BYTE + text.count(",") * READ_VALUE)
        inside: Counts = Counter()
        clean = redact_json(text, lambda value: self.value(value, inside, depth + 1))
        if clean is not None:
            counts.update(inside)
        return clean

    def _plain(self, text: str, counts: Counts) -> str:
        """Return text that is no JSON, or not all of it, without secrets."""
        self._allowance.take(text.count("\\u") * ESCAPE)
        raw = bytes_of(unescaped(text))
        clean = text
        # What was replaced can make something else found, by rules that match markers.
        for _ in range(_PASSES):
            found = self._scan.find(raw, allowance=self._allowance)
            if not found:
                break
            raw = _replaced(raw, found, counts)
            clean = raw.decode("utf-8", "surrogatepass")
        return clean


def _replaced(raw: bytes, found: Sequence[Found], counts: Counts) -> bytes:
    pieces: list[bytes] = []
    at = 0
    for one in found:
        start, end = whole_escapes(raw, one.start, one.end)
        if start == end:
            continue  # half of an escape was all of it
        pieces += raw[at:start], f"[redacted:{one.name}]".encode()
        counts[one.name] += 1
        at = end
    return b"".join([*pieces, raw[at:]])
