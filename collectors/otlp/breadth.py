"""Breadth: how many resources, scopes and items a request holds, counted before anything is made of them.

A few hundred kilobytes can hold millions of empty spans, each of which would cost more memory than it was sent in (reliability R19, S10).
"""

from collections import Counter
from collections.abc import Iterator
from contextvars import ContextVar
from functools import cache
from itertools import islice
from typing import Any, Final, TypeAlias

import msgspec

from collectors.otlp.body import TooLargeError
from collectors.otlp.json_mending import mended
from collectors.otlp.signal import AnySignal, Encoding
from collectors.otlp.wire import Envelope, in_snake_case
from pipeline.errors import PermanentError

_SMALLEST: Final = 2
"""Bytes of the smallest item, in both encodings."""
_OBJECTS: Final = 200
"""Objects or commas of JSON for each item that may be sent; with attributes as people write them, no 64 MiB hold as many."""
_OTHERS: Final = 4
"""Other fields around the items for each item that may be sent."""
_VARINT: Final = 0
_LENGTH: Final = 2
"""Kinds of fields of protobuf."""
_ITEM: Final = 2 << 3 | _LENGTH
"""What stands before an item."""
_MORE: Final = 0x80
"""The bit of a byte that says that the number goes on."""
_SIZES: Final = {1: 8, 5: 4}
"""Bytes of the fields of protobuf that are as long as their kind says."""
_LONGEST_VARINT: Final = 10


def check_breadth(signal: AnySignal, body: bytes, encoding: Encoding, most: int) -> bytes:
    """Refuse a request that holds more than ``most`` items, resources or scopes. Returns it, mended where it could not be counted else.

    Raises:
        TooLargeError: it does.
        PermanentError: it is no OTLP request.
    """
    if len(body) <= _SMALLEST * most:
        return body
    if encoding is Encoding.JSON:
        return _check_json(signal, body, most)
    _check_protobuf(body, most)
    return body


def _check_protobuf(body: bytes, most: int) -> None:
    scan = _Scan(body, most)
    scopes = items = 0
    try:
        for resources, resource in enumerate(scan.parts(0, len(body), 1), start=1):
            for scope in scan.parts(*resource, 2):
                scopes += 1
                items += scan.count(*scope, most - items)
                if scopes > most:
                    raise _too_many(most)
            if resources > most:
                raise _too_many(most)
    except IndexError:
        return  # it ends within a field: the parser says so, and better


class _Scan:
    """Steps over the fields of a message without reading what is in them."""

    def __init__(self, body: bytes, most: int) -> None:
        self._body = body
        self._most = most
        self._others = 0
        """Fields that are not what was looked for, in the whole request."""

    def count(self, at: int, end: int, most: int) -> int:
        """Return how many items a scope holds. This loop is passed by every span of a large request."""
        body, count = self._body, 0
        while at < end and body[at] == _ITEM and count <= most:
            size = body[at + 1]
            at += 2
            if size >= _MORE:
                size, at = _varint(body, at - 1)
            at += size
            count += 1
        if at < end and count <= most:  # something else among the items: the scope before them, a schema URL behind
            count += sum(1 for _ in islice(self.parts(at, end, 2), most - count + 1))
        if count > most:
            raise _too_many(self._most)
        return count

    def parts(self, at: int, end: int, number: int) -> Iterator[tuple[int, int]]:
        """Yield where each field of this number begins and ends."""
        while at < end:
            tag, at = _varint(self._body, at)
            kind = tag & 7
            size = _SIZES.get(kind, 0)
            if kind == _VARINT:
                _, at = _varint(self._body, at)
            elif kind == _LENGTH:
                size, at = _varint(self._body, at)
            elif not size:
                raise PermanentError("the body is not an OTLP request in protobuf: it holds a group, or is no message at all")
            if kind == _LENGTH and tag >> 3 == number:
                yield at, min(at + size, end)
            else:
                self._others += 1
                if self._others > _OTHERS * self._most:
                    raise _too_many(self._most)
            at += size


def _varint(body: bytes, at: int) -> tuple[int, int]:
    """Return a number and where it ends."""
    value = shift = 0
    for part in body[at : at + _LONGEST_VARINT]:
        at += 1
        value |= (part & 0x7F) << shift
        if part < _MORE:
            return value, at
        shift += 7
    raise IndexError(at)


def _check_json(signal: AnySignal, body: bytes, most: int) -> bytes:
    parts = max(body.count(b"{"), body.count(b","))
    if parts > _OBJECTS * most:
        raise _too_many(most)
    if parts <= most:
        return body
    for envelope in (signal.envelope, in_snake_case(signal.envelope)):
        body = _counted(envelope, body, most)
    return body


class _Count:
    """How many there are so far of a request in JSON; what is made of them while it is decoded counts itself."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._of_kind: Counter[str] = Counter()

    def add(self, kind: str, more: int = 1) -> None:
        """Take note of more; raise TooLargeError where that is too many."""
        self._of_kind[kind] += more
        if self._of_kind[kind] > self._most:
            raise _too_many(self._most)


_count: Final[ContextVar[_Count]] = ContextVar("breadth")


class _Object(msgspec.Struct, gc=False):
    """An item as it should be, of which nothing is read."""

    def __post_init__(self) -> None:
        _count.get().add("objects")


_Item: TypeAlias = _Object | list[msgspec.Raw] | str | int | float | bool | None


def _add_scope(scope: Any) -> None:
    _count.get().add("scopes")
    _count.get().add("items", len(scope.items or ()))


def _add_resource(_: Any) -> None:
    _count.get().add("resources")


@cache
def _decoder(envelope: Envelope) -> msgspec.json.Decoder[Any]:
    """Return what reads a request with these keys, and no part of it."""
    resources, scopes, items = envelope
    of_scope = msgspec.defstruct(
        "Scope", [("items", list[_Item] | None, None)], rename={"items": items}, namespace={"__post_init__": _add_scope}, gc=False
    )
    of_resource = msgspec.defstruct(
        "Resource",
        [("scopes", list[of_scope] | None, None)],  # type: ignore[valid-type]
        rename={"scopes": scopes},
        namespace={"__post_init__": _add_resource},
        gc=False,
    )
    request = msgspec.defstruct("Request", [("resources", list[of_resource] | None, None)], rename={"resources": resources})  # type: ignore[valid-type]
    return msgspec.json.Decoder(request)


def _counted(envelope: Envelope, body: bytes, most: int) -> bytes:
    """Return the body in which they could be counted; what does not decode is told by what decodes it."""
    if _is_counted(envelope, body, most):
        return body
    whole = mended(body)
    return whole if _is_counted(envelope, whole, most) else body


def _is_counted(envelope: Envelope, body: bytes, most: int) -> bool:
    token = _count.set(_Count(most))
    try:
        _decoder(envelope).decode(body)
    except (msgspec.DecodeError, RecursionError):
        return False
    finally:
        _count.reset(token)
    return True


def _too_many(most: int) -> TooLargeError:
    return TooLargeError(f"the request holds more than {most} items; send smaller batches, or raise receiver.max_spans")
