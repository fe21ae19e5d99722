"""Bodies are decompressed within a limit, and never trusted."""

import asyncio
import gzip
import os
import sys
import tracemalloc
import zlib
from collections.abc import AsyncIterator
from itertools import cycle, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.otlp.transports import COMPRESS

from collectors.otlp.body import MEMBERS, PIECE, WINDOW_LOG, TooLargeError, read_body
from pipeline.errors import PermanentError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LIMIT = 10_000
members = pytest.mark.parametrize("encoding", COMPRESS)


async def _chunks(body: bytes, size: int = 1000) -> AsyncIterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


@pytest.mark.parametrize("size", [0, 1, 999, 1000, LIMIT])
@pytest.mark.parametrize("encoding", ["", "identity", "gzip", "GZIP ", "zstd", "Zstd"])
async def test_a_body_within_the_limit_comes_out_as_it_was(encoding: str, size: int) -> None:
    plain = os.urandom(size)
    sent = COMPRESS.get(encoding.strip().lower(), bytes)(plain)
    assert await read_body(_chunks(sent), encoding, LIMIT, len(sent)) == plain


@pytest.mark.parametrize("encoding", ["", *COMPRESS])
async def test_one_byte_more_is_too_large(encoding: str) -> None:
    sent = COMPRESS.get(encoding, bytes)(os.urandom(LIMIT + 1))
    with pytest.raises(TooLargeError, match=f"larger than {LIMIT} bytes"):
        await read_body(_chunks(sent), encoding, LIMIT)


@pytest.mark.parametrize(("encoding", "length"), [("", LIMIT + 1), ("gzip", 3 * LIMIT), ("zstd", 3 * LIMIT)])
async def test_what_says_that_it_is_too_large_is_not_read(encoding: str, length: int) -> None:
    async def unread() -> AsyncIterator[bytes]:
        raise AssertionError("it is read")
        yield b""

    with pytest.raises(TooLargeError):
        await read_body(unread(), encoding, LIMIT, length)


@members
async def test_several_members_are_one_body_even_when_split_anywhere(encoding: str) -> None:
    write = COMPRESS[encoding]
    sent = write(b"one,") + write(b"") + write(b"two")
    for size in range(1, len(sent) + 1):
        assert await read_body(_chunks(sent, size), encoding, LIMIT) == b"one,two"


@members
async def test_many_small_members_have_one_limit_together(encoding: str) -> None:
    with pytest.raises(TooLargeError):
        await read_body(_chunks(COMPRESS[encoding](bytes(1001)) * 10), encoding, LIMIT)


@members
async def test_members_that_hold_nothing_have_a_limit_too(encoding: str) -> None:
    empty = COMPRESS[encoding](b"")
    assert await read_body(_chunks(empty * MEMBERS), encoding, 10 * LIMIT) == b""
    with pytest.raises(TooLargeError, match="compress it in one go"):
        await read_body(_chunks(empty * (MEMBERS + 1)), encoding, 10 * LIMIT)


@members
@pytest.mark.parametrize("chunk", [100, 1_000_000])
async def test_a_bomb_costs_no_more_memory_than_the_limit_allows(encoding: str, chunk: int) -> None:
    bomb = COMPRESS[encoding](bytes(50_000_000))
    assert len(bomb) < 10 * LIMIT
    tracemalloc.start()
    try:
        with pytest.raises(TooLargeError):
            await read_body(_chunks(bomb, chunk), encoding, 10 * LIMIT)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000


@members
async def test_a_body_within_a_large_limit_is_decompressed_in_pieces_and_whole(encoding: str) -> None:
    plain = os.urandom(1000) * 3000
    held: list[int] = []
    sent = COMPRESS[encoding](plain)
    assert await read_body(_chunks(sent, len(sent)), encoding, len(plain), len(sent), held.append) == plain
    assert held[-1] == len(plain)
    assert max(after - before for before, after in pairwise([0, *held])) <= PIECE


async def test_a_frame_that_asks_for_a_larger_window_than_http_allows_is_refused() -> None:
    def with_window(log: int) -> bytes:
        options = {int(zstd.CompressionParameter.window_log): log, int(zstd.CompressionParameter.content_size_flag): 0}
        writer = zstd.ZstdCompressor(options=options)
        return bytes(writer.compress(b"text" * 1000) + writer.flush())

    assert await read_body(_chunks(with_window(WINDOW_LOG)), "zstd", LIMIT) == b"text" * 1000
    with pytest.raises(PermanentError, match="the body is not zstd"):
        await read_body(_chunks(with_window(WINDOW_LOG + 1)), "zstd", LIMIT)


async def test_others_get_their_turn_while_a_large_body_is_decompressed() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    sent = gzip.compress(bytes(20 * PIECE))
    await read_body(_chunks(sent, len(sent)), "gzip", 20 * PIECE)
    counting.cancel()
    assert turns >= 20


@members
@pytest.mark.parametrize("case", ["empty", "cut short", "cut in the header", "plain", "of another kind", "trailing"])
async def test_what_is_not_what_it_says_is_refused(encoding: str, case: str) -> None:
    whole = COMPRESS[encoding](b"text")
    sent = {
        "empty": b"",
        "cut short": whole[:-1],
        "cut in the header": whole[:3],
        "plain": b"plain text",
        "of another kind": zlib.compress(b"text"),
        "trailing": whole + b"more",
    }[case]
    with pytest.raises(PermanentError, match=encoding):
        await read_body(_chunks(sent), encoding, LIMIT)


@members
@given(plain=st.binary(max_size=2000), cuts=st.lists(st.integers(1, 50), min_size=1), repeat=st.integers(1, 40))
async def test_any_body_comes_out_as_it_was_however_it_is_cut(encoding: str, plain: bytes, cuts: list[int], repeat: int) -> None:
    sent = COMPRESS[encoding](plain * repeat)

    async def chunks() -> AsyncIterator[bytes]:
        at, sizes = 0, cycle(cuts)
        while at < len(sent):
            size = next(sizes)
            yield sent[at : at + size]
            at += size

    assert await read_body(chunks(), encoding, 100_000) == plain * repeat


@pytest.mark.parametrize("encoding", ["deflate", "snappy", "br", "gzip, gzip"])
async def test_another_compression_is_refused_with_what_to_send(encoding: str) -> None:
    with pytest.raises(PermanentError, match="is not supported; send gzip, zstd, or nothing"):
        await read_body(_chunks(b"x"), encoding, LIMIT)
