"""Bodies are decompressed within a limit, and never trusted."""

import gzip
import os
import tracemalloc
import zlib
from collections.abc import AsyncIterator

import pytest

from collectors.otlp.body import TooLargeError, read_body
from pipeline.errors import PermanentError

LIMIT = 10_000


async def _chunks(body: bytes, size: int = 1000) -> AsyncIterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


@pytest.mark.parametrize("size", [0, 1, 999, 1000, LIMIT])
@pytest.mark.parametrize("encoding", ["", "identity", "gzip", "GZIP "])
async def test_a_body_within_the_limit_comes_out_as_it_was(encoding: str, size: int) -> None:
    plain = os.urandom(size)
    sent = gzip.compress(plain) if "gzip" in encoding.lower() else plain
    assert await read_body(_chunks(sent), encoding, LIMIT) == plain


@pytest.mark.parametrize("encoding", ["", "gzip"])
async def test_one_byte_more_is_too_large(encoding: str) -> None:
    plain = os.urandom(LIMIT + 1)
    with pytest.raises(TooLargeError, match=f"larger than {LIMIT} bytes"):
        await read_body(_chunks(gzip.compress(plain) if encoding else plain), encoding, LIMIT)


async def test_several_gzip_members_are_one_body_even_when_split_anywhere() -> None:
    sent = gzip.compress(b"one,") + gzip.compress(b"") + gzip.compress(b"two")
    for size in range(1, len(sent) + 1):
        assert await read_body(_chunks(sent, size), "gzip", LIMIT) == b"one,two"


async def test_many_small_members_have_one_limit_together() -> None:
    with pytest.raises(TooLargeError):
        await read_body(_chunks(gzip.compress(bytes(1001)) * 10), "gzip", LIMIT)


async def test_members_that_hold_nothing_have_a_limit_too() -> None:
    with pytest.raises(TooLargeError):
        await read_body(_chunks(gzip.compress(b"") * LIMIT), "gzip", LIMIT)


async def test_a_bomb_costs_no_more_memory_than_the_limit_allows() -> None:
    bomb = gzip.compress(bytes(50_000_000))
    assert len(bomb) < 10 * LIMIT
    tracemalloc.start()
    try:
        with pytest.raises(TooLargeError):
            await read_body(_chunks(bomb, len(bomb)), "gzip", 10 * LIMIT)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        gzip.compress(b"text")[:-1],
        gzip.compress(b"text")[:5],
        b"plain text",
        zlib.compress(b"text"),
        gzip.compress(b"text") + b"more",
    ],
    ids=["empty", "cut short", "cut in the header", "plain", "zlib", "trailing"],
)
async def test_what_is_not_gzip_is_refused(sent: bytes) -> None:
    with pytest.raises(PermanentError, match="gzip"):
        await read_body(_chunks(sent), "gzip", LIMIT)


@pytest.mark.parametrize("encoding", ["deflate", "zstd", "br", "gzip, gzip"])
async def test_another_compression_is_refused_with_what_to_send(encoding: str) -> None:
    with pytest.raises(PermanentError, match="is not supported; send gzip, or nothing"):
        await read_body(_chunks(b"x"), encoding, LIMIT)
