"""The body of an HTTP request, decompressed piece by piece and never beyond its limit."""

import asyncio
import sys
import zlib
from collections.abc import AsyncIterable, Callable, Iterator
from typing import Any, Final, Protocol

from pipeline.config.receiver import MEBIBYTE
from pipeline.errors import PermanentError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PIECE: Final = MEBIBYTE // 4
"""Bytes that are decompressed at a time; between two pieces others get their turn."""
MEMBERS: Final = 4096
"""Members of a compressed body: those that hold nothing cost time all the same. Tools that write many put 64 KiB into each."""
WINDOW_LOG: Final = 23
"""Memory for a frame of zstd, as a power of two: 8 MiB, the most that a sender may ask for over HTTP (RFC 9659)."""
_FRAME: Final = 1024
"""Bytes by which a compressed body may be longer than twice its limit, so that small limits can be reached."""
_GZIP: Final = 16 + zlib.MAX_WBITS


class TooLargeError(PermanentError):
    """A request is larger than the receiver reads."""


def _hold_nothing(size: int) -> None:
    """Take the place of what limits the bytes of all requests."""


async def read_body(
    chunks: AsyncIterable[bytes],
    encoding: str,
    limit: int,
    length: int | None = None,
    hold: Callable[[int], None] = _hold_nothing,
) -> bytes:
    """Return the body in plain, at most ``limit`` bytes of it.

    ``encoding`` is the ``Content-Encoding``, ``length`` the ``Content-Length``; ``hold`` hears how many bytes there are so far.

    Raises:
        TooLargeError: there is more, sent or decompressed (O10).
        PermanentError: it is compressed in another way, badly, or cut short (O3).
    """
    form = _form_of(encoding.strip().lower())
    most = limit if isinstance(form, _Plain) else 2 * limit + _FRAME
    if length is not None and length > most:
        raise too_large(limit)
    pieces: list[bytes] = []
    sent = size = 0
    async for chunk in chunks:
        sent += len(chunk)
        for piece in form.pieces(chunk):
            size += len(piece)
            if size > limit:
                raise too_large(limit)
            hold(size)
            pieces.append(piece)
            if len(piece) == PIECE:
                await asyncio.sleep(0)
        if sent > most:
            raise too_large(limit)
    form.end()
    return b"".join(pieces)


def too_large(limit: int) -> TooLargeError:
    """Return what is told to whom sends more than the limit."""
    return TooLargeError(f"the request is larger than {limit} bytes; send smaller batches")


class _Form(Protocol):
    """How a body is written."""

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        """Yield what a chunk holds in plain, at most :data:`PIECE` bytes at a time."""
        ...

    def end(self) -> None:
        """Raise PermanentError where more had to come."""
        ...


def _form_of(encoding: str) -> _Form:
    if encoding in {"", "identity"}:
        return _Plain()
    if encoding == "gzip":
        return _Members("gzip", zlib.error, lambda: _Gzip())  # noqa: PLW0108 - a class is not a function to the checker
    if encoding == "zstd":
        return _Members("zstd", zstd.ZstdError, lambda: _Zstd())  # noqa: PLW0108
    raise PermanentError(f"Content-Encoding {encoding[:40]!r} is not supported; send gzip, zstd, or nothing")


class _Plain:
    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        yield chunk

    def end(self) -> None:
        pass


class _Member(Protocol):
    """What is compressed in one go: a member of gzip, a frame of zstd."""

    @property
    def ended(self) -> bool: ...

    @property
    def unread(self) -> bytes:
        """What was sent and is not read: after the end it belongs to the next member."""
        ...

    def read(self, sent: bytes) -> tuple[bytes, bool]:
        """Return the next piece in plain, and whether there is more to be had from what was sent."""
        ...


class _Members:
    """Compressed members one after another, with one limit for all of them together (reliability R20)."""

    def __init__(self, name: str, error: type[Exception], new: Callable[[], _Member]) -> None:
        self._name = name
        self._error = error
        self._new = new
        self._member = new()
        self._count = 1

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        more = bool(chunk)
        while more:
            if self._member.ended:
                self._next()
            try:
                piece, more = self._member.read(chunk)
            except self._error as error:
                raise PermanentError(f"the body is not {self._name}: {error}") from error
            chunk = self._member.unread
            more = more or bool(chunk)
            if piece:
                yield piece

    def end(self) -> None:
        if not self._member.ended:
            raise PermanentError(f"the {self._name} body is cut short")

    def _next(self) -> None:
        self._count += 1
        if self._count > MEMBERS:
            raise TooLargeError(f"the {self._name} body has more than {MEMBERS} members; compress it in one go")
        self._member = self._new()


class _Gzip:
    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(_GZIP)

    @property
    def ended(self) -> bool:
        return self._inflate.eof

    @property
    def unread(self) -> bytes:
        return self._inflate.unused_data or self._inflate.unconsumed_tail

    def read(self, sent: bytes) -> tuple[bytes, bool]:
        piece = self._inflate.decompress(sent, PIECE)
        # A full piece can leave some of its last match behind, with nothing left to read.
        return piece, len(piece) == PIECE and not self._inflate.eof


class _Zstd:
    def __init__(self) -> None:
        options = {int(zstd.DecompressionParameter.window_log_max): WINDOW_LOG}
        self._inflate: Any = zstd.ZstdDecompressor(options=options)

    @property
    def ended(self) -> bool:
        ended: bool = self._inflate.eof
        return ended

    @property
    def unread(self) -> bytes:
        unread: bytes = self._inflate.unused_data if self._inflate.eof else b""
        return unread

    def read(self, sent: bytes) -> tuple[bytes, bool]:
        piece: bytes = self._inflate.decompress(sent, PIECE)
        return piece, not self._inflate.needs_input and not self._inflate.eof
