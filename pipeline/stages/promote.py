"""Failing runs in, candidates for the golden set out (spec section 9).

A case is a request; its members are the runs that were asked it and failed. Members are rows and everything else follows from them,
so neither order nor replay matters. People's decisions are never touched.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from pipeline.model import ids
from pipeline.model.golden import GoldenCase, GoldenMember
from pipeline.model.step import ToolCall
from pipeline.model.time import SECOND
from pipeline.scorers.calls import took_place
from pipeline.scorers.reference.task import folded

CANDIDATE: Final = "candidate"
WITHDRAWN: Final = "withdrawn"
DECIDED: Final = frozenset({"accepted", "rejected", "retired"})
"""States that people give."""
HELD_OUT_SHARE: Final = 0.3
"""Share of requests kept for the audit; a constant, because changing it would move cases between the splits."""


class FailingRun(msgspec.Struct, frozen=True):
    """What promotion needs of a run, as its latest version says. ``failing`` is false once it passes or is retracted."""

    project: str
    agent: str
    run_id: str
    trace_id: str
    version: int
    failing: bool
    reasons: tuple[str, ...]
    request: str
    answer: str | None
    tool_calls: tuple[ToolCall, ...]
    minute_ns: int


def case_id(project: str, agent: str, request: str) -> str:
    """Name the case of a request to an agent: 32 hex digits."""
    return ids.digest(16, "case", project, agent, folded(request))


def split(request: str) -> str:
    """Return ``development`` or ``held_out``; a function of the folded request alone, so that all its cases share a split."""
    return "held_out" if int(ids.digest(6, "split", folded(request)), 16) < HELD_OUT_SHARE * 2**48 else "development"


def members(run: FailingRun, stored: Iterable[str] = ()) -> tuple[GoldenMember, ...]:
    """Return a run's rows: in the case of its request while it fails, and out of every other case that ``stored`` says it is in.

    ``stored`` are ids of cases. A late span can change what was asked, and of whom. A run whose request was not captured
    is no test of anything and has no case.
    """
    wanted = {case_id(run.project, run.agent, run.request)} if run.failing and folded(run.request) else set()
    return tuple(
        GoldenMember(run.project, each, run.run_id, failing=each in wanted, version=run.version)
        for each in sorted(wanted | {*stored})
    )


def representative(members: Iterable[GoldenMember]) -> str | None:
    """Return the least run id among the failing members, else among all of them; None of none."""
    held = tuple(members)
    return min((each.run_id for each in held if each.failing), default=min((each.run_id for each in held), default=None))


def case(members: Iterable[GoldenMember], runs: Mapping[str, FailingRun], stored: GoldenCase | None = None) -> GoldenCase | None:
    """Return a case from the latest row of each of its members; ``stored`` itself where there is nothing new to write.

    ``runs``, by id, must hold the representative, from which everything but the count comes. A case that people decided on
    keeps what they saw and only counts on. One whose representative is not at hand is not made up: None, if it is not stored.
    """
    held = tuple(members)
    count = len({each.run_id for each in held if each.failing})
    version = sum(each.version for each in held)
    if stored is not None and stored.state in DECIDED:
        fresh = replace(stored, runs=count)
    else:
        least = representative(held)
        run = runs.get(least) if least is not None else None
        if run is not None:
            fresh = _made(run, held[0].case_id, count)
        elif stored is not None:
            fresh = replace(stored, runs=count, state=CANDIDATE if count else WITHDRAWN)
        else:
            return None
    if stored is None:
        return replace(fresh, version=version)
    if replace(fresh, version=stored.version) == stored:
        return stored
    return replace(fresh, version=max(version, stored.version + 1))


def _made(run: FailingRun, case_id: str, count: int) -> GoldenCase:
    return GoldenCase(
        id=case_id,
        project=run.project,
        agent=run.agent,
        input=run.request,
        state=CANDIDATE if count else WITHDRAWN,
        split=split(run.request),
        representative=run.run_id,
        runs=count,
        answer=run.answer,
        reference_tools=tuple(_suggested(call) for call in run.tool_calls if took_place(call)),
        why=run.reasons,
        provenance={
            "run_id": run.run_id,
            "trace_id": run.trace_id,
            "window": datetime.fromtimestamp(run.minute_ns // SECOND, UTC).isoformat(),
        },
    )


def _suggested(call: ToolCall) -> dict[str, Any]:
    """Return what a failing run called, for a person to correct: it is not known to be right."""
    arguments = {} if call.arguments is None else {"arguments": call.arguments}
    return {"name": call.name, **arguments, "reviewed": False}
