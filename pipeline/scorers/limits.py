"""Limits: steps, tool calls, seconds and tokens of a run, each under a configured maximum (spec section 3)."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field

from pipeline.model.run import Run
from pipeline.model.settings import Settings
from pipeline.model.time import SECOND
from pipeline.scorers.calls import calls_unseen, shows_execution, took_place
from pipeline.scorers.check import Check, Finding, Measure, Missing, check_of, measured, unknown


class LimitSettings(Settings):
    """The most that a run may use of something."""

    max: Decimal = Field(ge=0)
    """The greatest value that still passes."""
    gate: bool = False
    """Set to true to fail the run where the limit is passed."""


def _shorthand(value: Any) -> Any:
    return {"max": value} if isinstance(value, int | float | str | Decimal) and not isinstance(value, bool) else value


Limit = Annotated[LimitSettings, BeforeValidator(_shorthand)]
"""A limit, written as ``{max: 20}`` or just ``20``."""


class LimitsSettings(Settings):
    """Limits on a run. None is set by default, and a limit that is not set is not measured."""

    steps: Limit | None = None
    """Spans of the run."""
    tool_calls: Limit | None = None
    """Executed tool calls."""
    seconds: Limit | None = None
    """From the start of the run's first span to the end of its head."""
    input_tokens: Limit | None = None
    """Input tokens over all model calls, cached ones included."""
    output_tokens: Limit | None = None
    """Output tokens over all model calls, reasoning included."""
    cost_usd: Limit | None = None
    """US dollars over all model calls, by the price table."""


VERSIONS: Final = {"input_tokens": 2, "output_tokens": 2}
"""Of rules that were changed since they were first written."""


def limit_checks(settings: LimitsSettings) -> Iterator[Check]:
    """Yield a check for each limit that is set."""
    for name, amount in AMOUNTS.items():
        limit: LimitSettings | None = getattr(settings, name)
        if limit is not None:
            most = limit.max.normalize()
            yield check_of(
                name,
                {"rule": "at most", "version": VERSIONS.get(name, 1), "max": str(most)},
                _under(most, amount),
                gates=limit.gate,
            )


Amount = Callable[[Run], Decimal | Finding]
"""How much a run used, exactly; a finding where that is not known."""


def _under(most: Decimal, amount: Amount) -> Measure:
    def measure(run: Run) -> Finding:
        used = amount(run)
        if isinstance(used, Finding):
            return used
        holds = used <= most
        return measured(float(used), holds=holds, reason="" if holds else f"{used:f} is over the limit of {most:f}")

    return measure


def _steps(run: Run) -> Decimal:
    return Decimal(len(run.steps))


def _tool_calls(run: Run) -> Decimal | Finding:
    if calls_unseen(run):
        return unknown(Missing.CALLS_NOT_CAPTURED, "the models' content was not captured", upper=None)
    if run.tool_calls and not shows_execution(run.tool_calls):
        asked = len(run.tool_calls)
        return unknown(Missing.EXECUTION_NOT_CAPTURED, f"no span executed any of {asked} calls", upper=float(asked))
    return Decimal(sum(took_place(call) for call in run.tool_calls))


def _seconds(run: Run) -> Decimal | Finding:
    if not run.start_ns or run.end_ns < run.start_ns:
        return unknown(Missing.TIMES_NOT_CAPTURED, "start or end of the run is missing", upper=None)
    return Decimal(run.end_ns - run.start_ns) / SECOND


def _tokens(count: Literal["input", "output"]) -> Amount:
    def tokens(run: Run) -> Decimal | Finding:
        known: int | None = getattr(run.usage, count)
        if known is None:
            return unknown(Missing.USAGE_NOT_CAPTURED, "no token counts", upper=None)
        silent = sum(one.usage is None or getattr(one.usage, count) is None for one in run.billed if not one.refused)
        if silent:
            why = f"{silent} of {len(run.billed)} model calls do not say"
            return unknown(Missing.USAGE_NOT_CAPTURED, why, lower=float(known), upper=None)
        return Decimal(known)

    return tokens


AMOUNTS: Final[dict[str, Amount]] = {
    "steps": _steps,
    "tool_calls": _tool_calls,
    "seconds": _seconds,
    "input_tokens": _tokens("input"),
    "output_tokens": _tokens("output"),
}
"""What can be limited, by dimension."""
