"""Minutes, windows, gate states, trips, notifications: what runs add up to and who is told."""

from decimal import Decimal
from enum import StrEnum

import msgspec

from pipeline.model import ids
from pipeline.model.run import Cohort


class Sums(msgspec.Struct, frozen=True):
    """What a minute holds of one dimension; minutes add up to windows. Weights are w = 1/π.

    ``y`` is the value of a decided result, ``p`` is 1 where its outcome is pass. ``v`` is w²(1−π), for the Hájek variance
    (judging section 4). The undecided carry their bounds, so that no rate loses them.
    """

    n: int = 0
    decided: int = 0
    pending: int = 0
    w: float = 0.0
    w2: float = 0.0
    wy: float = 0.0
    wy2: float = 0.0
    wp: float = 0.0
    v: float = 0.0
    vy: float = 0.0
    vy2: float = 0.0
    vp: float = 0.0
    undecided_w: float = 0.0
    undecided_w_lower: float = 0.0
    undecided_w_upper: float = 0.0
    first_received_ns: int = 0
    """When the first of these runs was first heard of; 0 where there is none."""
    fingerprint: int = 0
    """Sum of the row versions over all rows of the minute, retired ones too: it only grows."""
    rows: int = 0
    """Rows of the minute, retired ones too."""
    passed: int | None = 0
    """Runs, not weighted: counts say how much there is, and are no estimate. None in what was added up before it was counted."""
    grader_errors: int | None = 0
    runs: int = 0
    """Live runs, sampled or not; this and what follows is of the verdict's series alone, and weighs nothing."""
    timed: int = 0
    """Of them, those whose duration is known."""
    duration_ns: int = 0
    priced: int = 0
    """Those whose cost is known."""
    cost_usd: Decimal = Decimal(0)
    erring: int = 0
    """Those with an error text."""
    alarming: int = 0
    """Those with an error text of something forbidden or unsafe."""


class Series(msgspec.Struct, frozen=True, order=True):
    """One line on a chart: a dimension under one contract, in one cohort of one project."""

    project: str
    cohort: Cohort
    dimension: str
    kind: str
    contract: str


class Touched(msgspec.Struct, frozen=True, order=True):
    """A minute of a cohort has new results."""

    project: str
    cohort: Cohort
    minute_ns: int


class Window(msgspec.Struct, frozen=True):
    """A dimension over [start, start + length) of event time. None is `no data`, never 0."""

    series: Series
    start_ns: int
    length_ns: int
    sums: Sums
    n_effective: float
    coverage: float | None
    """Weighted share of runs whose result is decided."""
    mean: float | None
    """Hájek-weighted mean of the values."""
    mean_low: float | None
    mean_high: float | None
    rate: float | None
    """Hájek-weighted share of passes among the decided."""
    rate_low: float | None
    rate_high: float | None
    """Wilson interval of ``rate`` on the effective n."""
    rate_if_undecided_fail: float | None
    rate_if_undecided_pass: float | None

    @property
    def end_ns(self) -> int:
        """Event time at which the window ends."""
        return self.start_ns + self.length_ns


class GateStatus(StrEnum):
    """Where a gate stands for one cohort."""

    OK = "ok"
    FIRING = "firing"


class GateState(msgspec.Struct, frozen=True):
    """The state of one gate for one cohort. ``version`` grows with each change."""

    project: str
    gate: str
    cohort: Cohort
    contract: str = ""
    status: GateStatus = GateStatus.OK
    trip_id: str = ""
    clears: int = 0
    runs: int = 0
    """Failing runs in the open incident of a hard gate."""
    last_window_ns: int = 0
    """Start of the last window that a rate gate read."""
    last_failure_ns: int = 0
    streak: int = 0
    """Windows in a row that meet the clear threshold."""
    why: str = ""
    version: int = 0
    memory: tuple[float, ...] = ()
    """What a gate knows besides: the evidence of a drift gate, as logarithms."""


class Transition(StrEnum):
    """What a trip row says. RUN adds a run to an open incident of a hard gate and notifies nobody."""

    FIRED = "fired"
    CLEARED = "cleared"
    RUN = "run"


class Trip(msgspec.Struct, frozen=True):
    """One transition of a gate. ``at_ns`` is the gate's clock; ``run_id`` names the run of a hard gate."""

    project: str
    gate: str
    kind: str
    cohort: Cohort
    trip_id: str
    transition: Transition
    at_ns: int
    contract: str = ""
    dimension: str = ""
    window_ns: int = 0
    run_id: str = ""
    value: float | None = None
    threshold: float | None = None
    why: str = ""
    retracted: bool = False


class Notification(msgspec.Struct, frozen=True):
    """Something that one destination is due to hear, once per idempotency key (promise 3)."""

    project: str
    trip_id: str
    transition: Transition
    destination: str
    body: str
    due_ns: int
    confirmed_ns: int = 0
    attempts: int = 0
    last_error: str = ""
    agent: str = ""
    """Whose trip it is, so that its owner finds it; empty in rows from before it was kept."""

    @property
    def idempotency_key(self) -> str:
        """Names (trip, transition, destination)."""
        return ids.digest(16, self.trip_id, self.transition, self.destination)
