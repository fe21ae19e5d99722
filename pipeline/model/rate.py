"""Rate: a share of passes with everything that a reader needs to judge it (scoring, section 1)."""

import msgspec


class Rate(msgspec.Struct, frozen=True):
    """A weighted share with its interval, what it was made of, and where it can still lie. None is no data, and never 0.

    The counts are of runs and weigh nothing; they are no estimate. A count is None in what was added up before it was kept.
    """

    n: int
    """Runs of which the dimension was to be measured."""
    decided: int
    passed: int | None
    failed: int | None
    insufficient_evidence: int | None
    grader_error: int | None
    pending: int
    """Runs whose judgment is outstanding: no outcome yet."""
    n_effective: float
    """(Σw)² / Σw² of the decided."""
    coverage: float | None
    """Weighted share of the decided."""
    rate: float | None
    """Weighted share of passes among the decided."""
    low: float | None
    high: float | None
    """Wilson's interval on the effective n, 95 %."""
    if_undecided_fail: float | None
    if_undecided_pass: float | None

    @property
    def spoken(self) -> str:
        """The whole of it in one line."""
        if not self.n:
            return "no data"
        return f"{self.estimate}; {self.besides}"

    @property
    def estimate(self) -> str:
        """The share with its interval."""
        return "no run is decided" if self.rate is None else f"{_share(self.rate)} ({_share(self.low)} to {_share(self.high)})"

    @property
    def besides(self) -> str:
        """What stands beside a share: the four outcomes, coverage, both bounds, n and effective n."""
        outcomes = (
            ("pass", self.passed),
            ("fail", self.failed),
            ("insufficient_evidence", self.insufficient_evidence),
            ("grader_error", self.grader_error),
            ("pending", self.pending),
        )
        counted = ", ".join(f"{'–' if count is None else count} {name}" for name, count in outcomes)
        return (
            f"{counted}; coverage {_share(self.coverage)}; {_share(self.if_undecided_fail)} if the undecided fail, "
            f"{_share(self.if_undecided_pass)} if they pass; n {self.decided}, effective n {self.n_effective:.4g}"
        )


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
