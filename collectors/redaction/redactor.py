"""The redactor: text and attribute values in, the same out, without what must not be stored."""

from base64 import b64decode
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Final, TypeAlias

from collectors.redaction.allowance import READ_BYTE, SUSPECT, TEXT, TOGETHER, UNLIMITED, Allowance, SpentError
from collectors.redaction.finder import Finder
from collectors.redaction.json_text import redact_json, unescaped
from collectors.redaction.names import NAME_HINT, NAME_IN_BYTES, is_count, names_a_secret
from collectors.redaction.otlp_bytes import named_in
from collectors.redaction.scan import Found, Scan, bytes_of, whole_escapes
from pipeline.config.redaction import FAILED, Detector
from pipeline.model.span import Attributes
from pipeline.patterns import escaped

LARGE: Final = 10**8
"""From here on a whole number is read as text is: a card's number can be one."""
_DEPTH: Final = 8
"""JSON inside of JSON is opened so often."""
_PASSES: Final = 4
_BYTES: Final = "bytesValue"

Counts: TypeAlias = Counter[str]
"""How often something was replaced, by detector or rule; what could not be redacted is under :data:`FAILED`."""


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
        self._by_name: Final = by_name
        self._whole: Final = whole or {}
        self._under = under or {}
        names = [escaped(name) for name in (*self._whole, *self._under)]
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
        return own

    def suspects(self, texts: Sequence[str]) -> bool:
        """Whether there may be anything to replace in any of these texts: one quick pass, and where it says no nothing else is needed."""
        return self._scan.suspects(bytes_of("\n".join(texts)))

    def suspects_message(self, raw: bytes) -> bool:
        """Whether there may be anything to replace in a message of protobuf: one quick pass over its bytes, without reading it."""
        return self._scan.suspects_message(raw)

    def text(self, text: str, counts: Counts, depth: int = 0) -> str:
        """Return text without secrets. JSON stays JSON; one for which a detector raises, or the allowance ends, is replaced whole."""
        if not text:
            return text
        if self.suspects((text,)):
            return self._suspicious(text, counts, depth)
        self._work(TEXT * bool(depth), depth)
        return text

    def _suspicious(self, text: str, counts: Counts, depth: int) -> str:
        try:
            self._allowance.take(SUSPECT + len(text) * READ_BYTE)
            inside: Counts = Counter()
            as_json = redact_json(text, lambda value: self.value(value, inside, depth + 1)) if depth < _DEPTH else None
            if as_json is not None:
                counts.update(inside)
                return as_json
            return self._plain(text, counts)
        except RecursionError:
            raise
        except SpentError:
            if depth:
                raise  # of half-read JSON nothing is kept
            counts[FAILED] += 1
            return FAILED
        except Exception:  # noqa: BLE001 - whatever a detector raises must neither lose the span nor let the value pass
            counts[FAILED] += 1
            return FAILED

    def value(self, value: Any, counts: Counts, depth: int = 0) -> Any:
        """Return the value of an attribute without secrets, however deep they are."""
        kind = type(value)
        if kind is str:
            return self.text(value, counts, depth)
        if kind is dict:
            raw = bytes_in(value)
            return self.attributes(value, counts, depth) if raw is None else self._of_bytes(value, raw, counts)
        if kind is list:
            clean = self._list(value, counts, depth)
            return value if _same(clean, value) else clean
        if kind is int and not -LARGE < value < LARGE:
            written = str(value)
            said = self.text(written, counts, depth)
            return value if said is written else said
        return value

    def attributes(self, attributes: Attributes, counts: Counts, depth: int = 0) -> Attributes:
        """Return attributes without secrets in their names or values."""
        plain = [name for name, value in attributes.items() if type(value) is str and self._is_plain(name)]
        # Together, as to look at a few short texts takes as long as to look at one.
        texts_of_all = self._texts([*attributes, *[attributes[name] for name in plain]], counts, depth)
        names = dict(zip(attributes, texts_of_all[: len(attributes)], strict=True))
        texts = dict(zip(plain, texts_of_all[len(attributes) :], strict=True))
        values = {
            name: texts[name] if name in texts else self._value_of(name, value, counts, depth)
            for name, value in attributes.items()
        }
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

    def mask(self, raw: bytes) -> bytes:
        """Return bytes that nobody can read as anything, with what looks like a secret overwritten in its place: the length is kept."""
        masked = bytearray(raw)
        try:
            regions = [(one.start, one.end) for one in self._scan.find(raw, allowance=Allowance())]
            regions += named_in(raw) if self._by_name else ()
        except Exception:  # noqa: BLE001 - as for text: what cannot be looked through is not kept
            regions = [(0, len(raw))]
        for start, end in regions:
            masked[start:end] = b"*" * (end - start)
        return bytes(masked)

    def _list(self, values: list[Any], counts: Counts, depth: int) -> list[Any]:
        if all(type(one) is str for one in values):
            return self._texts(values, counts, depth)
        self._work(len(values) * TOGETHER, depth)
        return [self.value(one, counts, depth) for one in values]

    def _texts(self, texts: list[str], counts: Counts, depth: int) -> list[str]:
        """Return texts without secrets."""
        self._work(TEXT + len(texts) * TOGETHER, depth)
        clean = list(texts)
        for place in self._scan.suspicious(texts):
            clean[place] = self._suspicious(texts[place], counts, depth)
        return clean

    def _work(self, units: int, depth: int) -> None:
        """Take note of work; within JSON it is given up where that was enough, as nothing of half-read JSON is kept."""
        if depth:
            self._allowance.take(units)
        else:
            self._allowance.charge(units)

    def _plain(self, text: str, counts: Counts) -> str:
        """Return text that is no JSON, or not all of it, without secrets."""
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

    def _is_plain(self, name: str) -> bool:
        return self._rule_of(name) is None and name not in self._under

    def _rule_of(self, name: str) -> str | None:
        rule = self._whole.get(name)
        return Detector.SECRET_NAME if rule is None and self._by_name and names_a_secret(name) else rule

    def _value_of(self, name: str, value: Any, counts: Counts, depth: int) -> Any:
        rule = self._rule_of(name)
        if rule is None:
            return self._under.get(name, self).value(value, counts, depth)
        marker = f"[redacted:{rule}]"
        if value is None or isinstance(value, bool) or value in ("", [], {}, marker, FAILED) or is_count(name, value):
            return value
        counts[rule] += 1
        return marker

    def _of_bytes(self, value: Attributes, raw: bytes, counts: Counts) -> Any:
        """Return bytes as they are, or a marker in place of all of them."""
        text = text_of(raw)
        inside: Counts = Counter()
        if self.text(text, inside) is text:
            return value
        counts.update(inside)
        return FAILED if FAILED in inside else f"[redacted:{next(iter(inside))}]"


def bytes_in(value: Attributes) -> bytes | None:
    """Return the bytes of an attribute that is bytes; None where it only looks like one."""
    text = value.get(_BYTES)
    if len(value) != 1 or not isinstance(text, str):
        return None
    try:
        return b64decode(text, validate=True)
    except ValueError:
        return None


def text_of(raw: bytes) -> str:
    """Return bytes as text, whatever they are."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _same(some: Any, others: Any) -> bool:
    return all(one is other for one, other in zip(some, others, strict=True))


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
