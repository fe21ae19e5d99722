"""What ``tracegrade dead-letters`` does. Bytes are shown, never obeyed: what would act on a terminal is written as an escape."""
# ruff: noqa: PLC0415 - a command imports what it needs: the engine and the detectors alone take seconds

import asyncio
from base64 import b64encode
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from pipeline.apps.commands import print_json, print_line
from pipeline.errors import ConfigurationError

if TYPE_CHECKING:
    from pipeline.model.dead_letter import LetterSummary, Replay
    from pipeline.model.topology import DeadLetter

WIDTH: Final = 16
"""Bytes of a line of hex."""
DIGITS: Final = 12
"""Of an id in a list; a beginning finds the letter."""


class Wanted(NamedTuple):
    """Which letters a person wants to see."""

    reason: str = ""
    everything: bool = False
    """Also those that were sent back."""

    def of(self, letters: "Sequence[LetterSummary]") -> "list[LetterSummary]":
        """Return the wanted ones."""
        return [
            letter
            for letter in letters
            if (self.everything or letter.waiting) and (self.reason in letter.reason or self.reason in letter.origin)
        ]


def list_letters(config: Path | None, wanted: Wanted, limit: int, skip: int, *, json: bool) -> int:
    """Print a page of letters."""
    letters = wanted.of(asyncio.run(_summaries(config)))
    page = letters[skip : skip + limit]
    if json:
        print_json({"total": len(letters), "skip": skip, "letters": page})
        return 0
    from pipeline.apps import show

    made = show.table("Dead letters", "id", "received", "project", "origin", "bytes", "reason")
    made.columns[4].justify = "right"
    for letter in page:
        reason = f"{letter.reason} [sent back: {letter.outcome}]" if letter.outcome else letter.reason
        cells = [letter.id[:DIGITS], show.utc(letter.received_ns), letter.project or show.UNKNOWN, letter.origin]
        made.add_row(*map(show.cell, cells), show.cell(_size(letter)), show.cell(reason))
    if page:
        show.console().print(made)
    rest = len(letters) - skip - len(page)
    print_line(f"{show.counted(len(letters), 'dead letter')}" + (f"; --skip {skip + limit} shows the next" if rest > 0 else ""))
    return 0


def show_letter(config: Path | None, written: str, *, as_hex: bool, json: bool) -> int:
    """Print one letter."""
    letter, known = asyncio.run(_letter(config, written))
    if json:
        print_json(
            {**msgspec.to_builtins(letter), "id": letter.id, "cut": letter.cut, "outcome": known.outcome, "detail": known.detail}
        )
        return 0
    from pipeline.apps import show

    print_line(f"id        {letter.id}")
    print_line(f"received  {show.utc(letter.received_ns)}")
    print_line(f"project   {letter.project or show.UNKNOWN}")
    print_line(f"origin    {letter.origin}")
    print_line(f"reason    {letter.reason}")
    if known.outcome:
        print_line(f"sent back {known.outcome}: {known.detail}")
    for name, value in letter.headers:
        print_line(f"header    {name}: {_text(value)}")
    if letter.key is not None:
        print_line(f"key       {_text(letter.key)}")
    print_line(f"bytes     {_size(known)}{_about(letter)}")
    for line in _lines(letter.body, as_hex=as_hex):
        print_line(line)
    return 0


def replay(config: Path | None, written: Sequence[str], reason: str, *, everything: bool, json: bool) -> int:
    """Send letters back; 1 where one of them failed again."""
    if bool(written) == everything:
        raise ConfigurationError("write the ids of the letters to send back, or --all")
    if reason and not everything:
        raise ConfigurationError("--reason chooses among all letters; write --all with it")
    done = asyncio.run(_replay(config, written, reason))
    if json:
        print_json(done)
    else:
        for one in done:
            print_line(f"{one.letter_id[:DIGITS]}  {one.outcome}: {one.detail}")
        print_line(f"{sum(_sent(one) for one in done)} of {len(done)} sent back; the others stay")
    return 0 if all(map(_sent, done)) else 1


def _sent(one: "Replay") -> bool:
    from pipeline.model.dead_letter import Outcome

    return one.outcome is Outcome.SENT


async def _summaries(config: Path | None) -> "list[LetterSummary]":
    from pipeline.apps.letters import opened
    from pipeline.config.load import load

    async with opened(load(config)) as letters:
        return await letters.summaries()


async def _letter(config: Path | None, written: str) -> "tuple[DeadLetter, LetterSummary]":
    from pipeline.apps.letters import found, opened
    from pipeline.config.load import load

    async with opened(load(config)) as letters:
        summaries = await letters.summaries()
        letter_id = found(summaries, written)
        (letter,) = await letters.by_id([letter_id])
        return letter, next(one for one in summaries if one.id == letter_id)


async def _replay(config: Path | None, written: Sequence[str], reason: str) -> "list[Replay]":
    from pipeline.apps.letters import found, opened
    from pipeline.config.load import load

    async with opened(load(config)) as letters:
        summaries = await letters.summaries()
        # The oldest first: what came first was meant to be there first.
        ids = [found(summaries, one) for one in written] or [one.id for one in reversed(Wanted(reason).of(summaries))]
        return await letters.replay(ids)


def _size(letter: "LetterSummary") -> str:
    return str(letter.size) if letter.kept == letter.size else f"{letter.kept} of {letter.size}"


def _about(letter: "DeadLetter") -> str:
    notes = ["the end is missing, so it cannot be sent back"] if letter.cut else []
    if letter.masked:
        notes.append("masked: some are not what was received, at their length, and go back as they stand here")
    return f" ({'; '.join(notes)})" if notes else ""


def _lines(body: bytes, *, as_hex: bool) -> Iterator[str]:
    """Yield the bytes as text where they are text, else as hex with what can be read beside it."""
    try:
        if not as_hex:
            yield body.decode()
            return
    except UnicodeDecodeError:
        pass
    for at in range(0, len(body), WIDTH):
        row = body[at : at + WIDTH]
        shown = "".join(chr(one) if 32 <= one < 127 else "." for one in row)  # noqa: PLR2004 - what ASCII can print
        yield f"{at:08x}  {row.hex(' '):{3 * WIDTH - 1}}  {shown}"


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return f"base64 {b64encode(value).decode()}"
