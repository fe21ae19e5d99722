"""What the owner of a trace knows of it, and what it writes: one version of its runs and results."""

from decimal import Decimal
from typing import Final

import msgspec

from pipeline.model.evidence import Evidence
from pipeline.model.log_record import LogRecord
from pipeline.model.result import Feedback, Judgment, Kind, Result, Verdict
from pipeline.model.run import CloseReason, Place, Run, RunClass, Trouble
from pipeline.model.span import Span
from pipeline.model.spending import Cost

TraceKey = tuple[str, str]
"""(project, trace id)."""


class ResultKey(msgspec.Struct, frozen=True, order=True):
    """The key of a results row, apart from its project."""

    run_id: str
    place: Place
    dimension: str
    contract: str


class Sampling(msgspec.Struct, frozen=True):
    """Whether a run is judged, by which plan, and how probable that was: what every estimate divides by."""

    plan: str
    sampled: bool
    inclusion_probability: float


class Transcript(msgspec.Struct, frozen=True):
    """A run rendered for a reader. ``hash`` names exactly what was judged; ``too_long`` says that cutting did not help."""

    body: str
    hash: str
    too_long: bool = False


class StoredRun(msgspec.Struct, frozen=True):
    """What the runs table says of a run that was written before."""

    run_id: str
    version: int
    live: bool
    transcript_hash: str = ""
    requested_ns: int = 0
    deadline_ns: int = 0
    run_class: str = ""


class StoredTrace(msgspec.Struct, frozen=True):
    """Everything that is stored of a trace: its facts, and what was folded from them so far."""

    project: str
    trace_id: str
    spans: tuple[Span, ...] = ()
    judgments: tuple[Judgment, ...] = ()
    feedback: tuple[Feedback, ...] = ()
    log_records: tuple[LogRecord, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    """What record sources were asked about its runs, and what they answered."""
    first_received_ns: int = 0
    """When its first span came, as of the traces row: the span itself may have expired."""
    graded_facts: int = 0
    """``facts`` of the traces row; 0 where there is none. The trace is open while it has more facts than this."""
    graded_receipts: int = 0
    """``receipts`` of the traces row; 0 where there is none, or where it does not say."""
    version: int = 0
    runs: tuple[StoredRun, ...] = ()
    result_keys: frozenset[ResultKey] = frozenset()
    """Keys of all results rows of its runs, at every place they ever had, retired ones too."""


class ResultRow(msgspec.Struct, frozen=True):
    """A row of ``results`` as it stands: a result where a run has it, or the weight-0 row that retires one (``result`` is None)."""

    project: str
    trace_id: str
    key: ResultKey
    version: int
    kind: str
    weight: float
    inclusion_probability: float
    first_received_ns: int
    transcript_hash: str = ""
    result: Result | None = None
    spent: "Spent | None" = None
    """In the row of the verdict, which every live run has once."""
    revision: str = ""
    """Beside the contract in its key."""


class Spent(msgspec.Struct, frozen=True):
    """What a run took, and what its errors tell. None is not known, and never 0."""

    duration_ns: int | None
    cost_usd: Decimal | None
    trouble: Trouble


class RunVersion(msgspec.Struct, frozen=True):
    """One run as it is written: its row in ``runs`` and its rows in ``results``."""

    run: Run
    version: int
    run_class: RunClass
    class_reason: str
    sampling: Sampling
    results: tuple[Result, ...]
    verdict: Verdict
    transcript: Transcript | None = None
    requested_ns: int = 0
    deadline_ns: int = 0
    """0 unless a judgment was ever requested for this transcript."""
    failing: tuple[str, ...] = ()
    """Why the run is a failure worth keeping as a golden candidate; empty where it is none."""
    feedback: tuple[str, ...] = ()
    """Ids of what was said of the run, by people and by others who evaluated it."""
    cost: Cost = Cost()
    trouble: Trouble = Trouble.NONE


class Retraction(msgspec.Struct, frozen=True):
    """A run that no longer heads a group of its trace."""

    run_id: str
    merged_into: str
    version: int


class Retired(msgspec.Struct, frozen=True):
    """A results row that counts in nothing any more: written again with weight 0."""

    key: ResultKey
    version: int


class TraceVersion(msgspec.Struct, frozen=True):
    """All that one fold of a trace writes. ``close_reason`` is None while some of its runs are still open: then no traces row."""

    project: str
    trace_id: str
    facts: int
    version: int
    runs: tuple[RunVersion, ...]
    retractions: tuple[Retraction, ...] = ()
    retired: tuple[Retired, ...] = ()
    not_an_agent_run: bool = False
    close_reason: CloseReason | None = None
    closed_ns: int = 0
    first_received_ns: int = 0
    """When the trace's first span came."""
    receipts: int = 0
    """Sum of when each of the facts came first, in ns: a version of as many facts that knows of an earlier delivery has less of it."""
    revision: str = ""
    """Commit of the code that made it: beside the contracts, and in none of their hashes (scoring, section 7). Empty where it is not known."""


def weight(kind: Kind, sampling: Sampling) -> float:
    """Return how much a result counts (design section 3): code 1; judged, composite and verdict 1/π, and 0 where the run was not sampled."""
    if kind is Kind.CODE:
        return 1.0
    return 1.0 / sampling.inclusion_probability if sampling.sampled else 0.0


def spent_by(version: RunVersion) -> Spent:
    """Return what a run took: from the start of its first span to the end of its head, and its cost where that is known."""
    run = version.run
    known = 0 < run.start_ns <= run.end_ns
    return Spent(run.end_ns - run.start_ns if known else None, dollars(version.cost.usd), version.trouble)


def dollars(amount: float | Decimal | None) -> Decimal | None:
    """Return an amount of money to the 12th decimal, which is how it is added up; None for what cannot have been paid."""
    exact = Decimal(str(amount)) if amount is not None else None
    return exact.quantize(_EXACT) if exact is not None and exact.is_finite() and 0 <= exact < _MOST else None


_EXACT: Final = Decimal("1e-12")
_MOST: Final = Decimal(10**9)


def result_rows(version: TraceVersion) -> tuple[ResultRow, ...]:
    """Return the rows that a version writes to ``results``: those of its runs, and those that retire what no longer counts."""
    rows = [
        ResultRow(
            project=version.project,
            trace_id=version.trace_id,
            key=ResultKey(one.run.run_id, one.run.place, result.dimension, result.contract),
            version=one.version,
            kind=result.kind,
            weight=weight(result.kind, one.sampling),
            inclusion_probability=one.sampling.inclusion_probability,
            first_received_ns=one.run.first_received_ns,
            transcript_hash=one.transcript.hash if one.transcript else "",
            result=result,
            spent=spent_by(one) if result.kind is Kind.VERDICT else None,
            revision=version.revision,
        )
        for one in version.runs
        for result in one.results
    ]
    rows += [
        ResultRow(
            version.project,
            version.trace_id,
            one.key,
            one.version,
            "",
            weight=0.0,
            inclusion_probability=0.0,
            first_received_ns=0,
            revision=version.revision,
        )
        for one in version.retired
    ]
    return tuple(rows)
