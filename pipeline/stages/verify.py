"""Verify: a run's stored scores made again from its stored inputs, and whatever is not equal named (spec section 7).

An input carries the hash of what was said; a score the hash of the contract that it was made under. So a difference has a place: an input
that is not what it was, a contract that is not the one in force, or a score that neither explains.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec

from pipeline.model import evidence, ids, log_record, span
from pipeline.model.contract import Contract
from pipeline.model.evidence import Question
from pipeline.model.result import Result
from pipeline.model.version import RunVersion, StoredTrace
from pipeline.scorers.reading import key_in_words
from pipeline.stages.assemble import TraceState
from pipeline.stages.turn import Assembly, turn

_NEVER: Final = 1 << 62
_NEWS: Final = "facts came that it is not graded by yet; ask again in a minute"
_COMPARED: Final = ("outcome", "value", "lower", "upper", "reason", "evidence", "authority")


class Kept(msgspec.Struct, frozen=True):
    """What is stored of a run besides its trace."""

    run_id: str
    version: int
    deadline_ns: int
    """Until when a judgment was waited for; 0 where none was."""
    results: tuple[Result, ...]
    transcript_hash: str = ""
    transcript: str | None = None
    altered: "tuple[Difference, ...]" = ()
    """Facts that are not what their hash says, as far as only the store can tell: judgments and feedback."""
    revision: str = ""
    """Commit of the code that graded it; empty where it was not kept."""


class Cause(StrEnum):
    """What a difference lies in."""

    INPUT = "input"
    CONTRACT = "contract"
    SPEC = "spec"
    """The policy of a quality score."""
    SCORE = "score"


class Difference(msgspec.Struct, frozen=True):
    """Something that is not equal. ``stored`` and ``again`` are what stands there, and what comes out now."""

    cause: Cause
    what: str
    stored: str
    again: str


class Verification(msgspec.Struct, frozen=True):
    """What became of making a run's scores again; ``why_not`` is why it could not be done, empty where it could."""

    run_id: str
    scores: int
    differences: tuple[Difference, ...] = ()
    why_not: str = ""
    revision: str = ""
    """Commit of the code that graded it; empty where it was not kept."""
    revision_again: str = ""
    """Of the code that made its scores again."""

    @property
    def equal(self) -> bool:
        """Whether every score came out as it is stored."""
        return not self.differences and not self.why_not


def verify(
    trace: StoredTrace, kept: Kept, assembly: Assembly, stored: Mapping[str, Contract], current: Mapping[str, Contract]
) -> Verification:
    """Make a run's scores again. ``stored`` and ``current`` are contracts by hash: all that were ever used, and those in force."""
    found = _verified(trace, kept, assembly, stored, current)
    return msgspec.structs.replace(found, revision=kept.revision, revision_again=assembly.revision)


def _verified(
    trace: StoredTrace, kept: Kept, assembly: Assembly, stored: Mapping[str, Contract], current: Mapping[str, Contract]
) -> Verification:
    altered = tuple(_altered(trace, kept))
    again = _again(trace, kept, assembly)
    if again is None:
        why = "" if altered else "its spans are not stored any more, or make another run now"
        return Verification(kept.run_id, len(kept.results), altered, why)
    altered = (*altered, *_unread(again, trace, kept, assembly))
    if again.version // 4 != kept.version // 4 and not altered:
        fewer = again.version < kept.version
        why = "facts that it was graded by are not stored any more" if fewer else _NEWS
        return Verification(kept.run_id, len(kept.results), (), why)
    changed = tuple(_differing(kept.results, again.results, stored, current))
    shown_else = tuple(_shown_else(kept, again)) if changed and not altered else ()
    return Verification(kept.run_id, len(kept.results), (*altered, *shown_else, *changed))


def _altered(trace: StoredTrace, kept: Kept) -> Iterator[Difference]:
    """Yield the inputs that are not what their hash says."""
    yield from kept.altered
    for one in trace.spans:
        if (now := span.seal(one).content_hash) != one.content_hash:
            yield Difference(Cause.INPUT, f"span {one.span_id}", one.content_hash, now)
    for record in trace.log_records:
        if (now := log_record.seal(record).content_hash) != record.content_hash:
            yield Difference(Cause.INPUT, f"log record of span {record.span_id}", record.content_hash, now)
    for read in trace.evidence:
        if (now := evidence.seal(read).content_hash) != read.content_hash:
            yield Difference(Cause.INPUT, _named(read), read.content_hash, now)
    if kept.transcript is not None and ids.digest(16, kept.transcript) != kept.transcript_hash:
        yield Difference(Cause.INPUT, "transcript", kept.transcript_hash, ids.digest(16, kept.transcript))


def _shown_else(kept: Kept, again: RunVersion) -> Iterator[Difference]:
    """Yield the transcript where a judge would be shown another one now, as after a change of the reference answers or of its length."""
    if kept.transcript_hash and again.transcript is not None and again.transcript.hash != kept.transcript_hash:
        yield Difference(Cause.INPUT, "transcript", kept.transcript_hash, again.transcript.hash)


def _unread(again: RunVersion, trace: StoredTrace, kept: Kept, assembly: Assembly) -> Iterator[Difference]:
    """Yield the inputs that are gone: answers to what the run's checks, under the contracts of then, ask of record sources."""
    contracts = {one.dimension: one.contract for one in kept.results}
    reads = {one.id for one in trace.evidence}
    for check in assembly.grading_of(trace.project, again.run.place.cohort.agent).checks:
        if contracts.get(check.name) == check.contract:
            missing = (one for one in check.asks(again.run) if one.id not in reads)
            yield from (Difference(Cause.INPUT, _named(one), "read", "not stored") for one in missing)


def _named(question: Question) -> str:
    return f"evidence of {question.source} {key_in_words(question)}"


def _again(trace: StoredTrace, kept: Kept, assembly: Assembly) -> RunVersion | None:
    """Grade the trace as if nothing of it had been written, at a time at which as much had run out as when it was."""
    state = TraceState.stored(msgspec.structs.replace(trace, graded_facts=0, graded_receipts=0))
    expired = bool(kept.version % 4)
    now = _NEVER if expired or not kept.deadline_ns else kept.deadline_ns - 1
    version = turn(state, now, now, assembly, patient=False).version
    return next((one for one in version.runs if one.run.run_id == kept.run_id), None) if version is not None else None


def _differing(
    before: Sequence[Result], after: Sequence[Result], stored: Mapping[str, Contract], current: Mapping[str, Contract]
) -> Iterator[Difference]:
    found = {one.dimension: one for one in after}
    known = {one.dimension: one for one in before}
    for name in sorted(known.keys() | found.keys()):
        if name not in found or name not in known:
            yield Difference(Cause.CONTRACT, name, *("measured" if name in some else "not measured" for some in (known, found)))
        elif known[name].contract != found[name].contract:
            parts = parts_that_differ(stored.get(known[name].contract), current.get(found[name].contract))
            yield from (Difference(Cause.CONTRACT, f"{name}: {part}", was, now) for part, was, now in parts)
        else:
            yield from _values(name, known[name], found[name])


def _values(name: str, was: Result, now: Result) -> Iterator[Difference]:
    for field in _COMPARED:
        one, other = getattr(was, field), getattr(now, field)
        if one != other:
            yield Difference(Cause.SCORE, f"{name}: {field}", shown(one), shown(other))


def parts_that_differ(was: Contract | None, now: Contract | None) -> Iterable[tuple[str, str, str]]:
    """Return the parts of two contracts that differ; the whole of it where one of them is not known."""
    if was is None or now is None:
        return [("contract", "not stored" if was is None else was.hash, "not known" if now is None else now.hash)]
    one, other = (dict(flat("", msgspec.to_builtins(contract))) for contract in (was, now))
    return [
        (key, shown(one.get(key)), shown(other.get(key)))
        for key in sorted(one.keys() | other.keys())
        if one.get(key) != other.get(key)
    ]


def flat(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what plain values hold, by dotted name; a list is one value."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from flat(f"{prefix}.{key}" if prefix else str(key), item)
    else:
        yield prefix, value


def shown(value: Any) -> str:
    """Return a value as a reader sees it beside another one."""
    if isinstance(value, list | tuple):
        value = ", ".join(map(str, value))
    return "nothing" if value is None or value == "" else str(value)
