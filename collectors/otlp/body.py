"""The body of an HTTP request, decompressed piece by piece and never beyond its limit."""

import zlib
from collections.abc import AsyncIterable
from typing import Final

from pipeline.errors import PermanentError

_GZIP: Final = 16 + zlib.MAX_WBITS
_PLAIN: Final = ("", "identity")


class TooLargeError(PermanentError):
    """A request is larger than the receiver reads."""


async def read_body(chunks: AsyncIterable[bytes], encoding: str, limit: int) -> bytes:
    """Return the body in plain, at most ``limit`` bytes of it; ``encoding`` is the ``Content-Encoding``.

    Raises:
        TooLargeError: there is more, sent or decompressed (O10).
        PermanentError: it is compressed in another way, badly, or cut short (O3).
    """
    body = _body_of(encoding.strip().lower(), limit)
    async for chunk in chunks:
        body.add(chunk)
    return body.end()


def _body_of(encoding: str, limit: int) -> "_Body | _GzipBody":
    if encoding in _PLAIN:
        return _Body(limit)
    if encoding == "gzip":
        return _GzipBody(limit)
    raise PermanentError(f"Content-Encoding {encoding[:40]!r} is not supported; send gzip, or nothing")


class _Body:
    """What has been read so far, and how many bytes more may be."""

    def __init__(self, limit: int) -> None:
        self.room = limit
        self._limit = limit
        self._pieces: list[bytes] = []

    def add(self, chunk: bytes) -> None:
        self.room -= len(chunk)
        self._pieces.append(chunk)
        if self.room < 0:
            raise _too_large(self._limit)

    def end(self) -> bytes:
        return b"".join(self._pieces)


class _GzipBody:
    """The same for gzip: one member or several, with one limit for all of them together (reliability R20)."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        # Gzip can make a body a little longer; a stream of members that hold nothing would never end.
        self._compressed_room = 2 * limit
        self._plain = _Body(limit)
        self._member = zlib.decompressobj(_GZIP)

    def add(self, chunk: bytes) -> None:
        self._compressed_room -= len(chunk)
        if self._compressed_room < 0:
            raise _too_large(self._limit)
        try:
            while chunk:
                if self._member.eof:
                    self._member = zlib.decompressobj(_GZIP)
                self._plain.add(self._member.decompress(chunk, self._plain.room + 1))
                chunk = self._member.unused_data or self._member.unconsumed_tail
        except zlib.error as error:
            raise PermanentError(f"the body is not gzip: {error}") from error

    def end(self) -> bytes:
        if not self._member.eof:
            raise PermanentError("the gzip body is cut short")
        return self._plain.end()


def _too_large(limit: int) -> TooLargeError:
    return TooLargeError(f"the request is larger than {limit} bytes; send smaller batches")
