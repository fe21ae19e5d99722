"""The benchmark of scoring in code: what a run of ten spans costs, part by part; and trajectories against a reference, beside ``agentevals``.

``make bench`` runs it. Both score the same real trajectories in the same run, each in an interpreter of its own, one after the other. All
of it shares this machine, so ratios travel; microseconds do not. Where the environment of ``agentevals`` cannot be built that is said.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec
from agentevals_beside.trajectories import Pair, pairs, written
from machine import UnavailableError
from quickstarts.environments import python_environment
from worlds import agent, model, tool

from collectors.dialects import read
from pipeline.config.grading import grading_of
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.model.reference import Order
from pipeline.model.result import Outcome, Result
from pipeline.model.run import Run
from pipeline.model.span import Span
from pipeline.scorers.check import Check
from pipeline.scorers.reference.matching import tool_call_accuracy
from pipeline.scorers.registry import ChecksSettings, declared_checks, trajectory_checks
from pipeline.stages.assemble import TraceState
from pipeline.stages.grade import Grading
from pipeline.stages.place import end_of, first_received, place_of, start_of
from pipeline.stages.scorecard import scorecard
from pipeline.stages.trajectory import as_run

BESIDE: Final = Path(__file__).parent / "agentevals_beside"
ROUNDS: Final = 5
"""Of everything; the best counts."""
MODES: Final = {"strict": Order.EXACT, "unordered": Order.ANY, "subset": Order.SUBSET, "superset": Order.SUPERSET}
"""What ``agentevals`` calls them, and we."""
CHECKED: Final[dict[str, Any]] = {
    "limits": {"steps": 20, "seconds": 60},
    "policies": [
        {"name": "refund_after_look", "before": {"tool": "refund", "needs": "look"}},
        {"name": "refund_once", "at_most": {"tool": "refund", "times": 1, "per": "id"}},
    ],
    "output": [{"name": "no_promises", "banned": ["guaranteed"]}, {"name": "no_secrets", "no_secret": True}],
}
"""What somebody may well declare."""


def grading() -> Grading:
    """How the runs are graded: the shipped rubric, all checks above, no judge."""
    configured = TracegradeSettings.model_validate({"agents": {"default": {"checks": CHECKED}}})
    return grading_of(configured)("bench", "shop")


def ten_spans(number: int) -> list[Span]:
    """A run as agents make them: five turns of a model, four calls of tools, one of which fails and is made again."""
    turns = [model(number, 2 * turn + 1, 0, f"turn {turn}") for turn in range(5)]
    names = ("look", "look", "refund", "mail")
    calls = [tool(number, 2 * at + 2, 0, name, fails=at == 0) for at, name in enumerate(names)]
    return [agent(number, 0, None, "shop"), *turns, *calls]


def run_of(spans: Sequence[Span]) -> Run:
    """Read spans and group them into their one run, as a trace's owner does."""
    state = TraceState(spans[0].project, spans[0].trace_id)
    state.add(spans)
    (group,) = state.groups(read)
    place = place_of(group)
    end = end_of(group, place.cohort.environment)
    return as_run(
        project=state.project,
        trace_id=state.trace_id,
        run_id=state.run_id(group.head.span_id),
        head=group.head,
        steps=group.steps,
        place=place,
        start_ns=start_of(group, end),
        end_ns=end,
        first_received_ns=first_received(group),
    )


def best(work: Callable[[], object], times: int) -> float:
    """Return the µs that one of so many things takes, in the best of some rounds."""

    def once() -> float:
        began = time.perf_counter()
        work()
        return time.perf_counter() - began

    return 1e6 * min(once() for _ in range(ROUNDS)) / times


def scored(checks: Sequence[Check], run: Run) -> tuple[Result, ...]:
    """Return what these checks say of a run."""
    return tuple(result for check in checks if (result := check.score(run)) is not None)


def parts(runs: int) -> Iterator[tuple[str, float]]:
    """Yield what each part of scoring costs, in µs a run."""
    traces = [ten_spans(number) for number in range(runs)]
    made = [run_of(spans) for spans in traces]
    if any(len(run.steps) != 10 for run in made):
        raise AssertionError("not all runs have ten spans")
    how = grading()
    settings = ChecksSettings.model_validate(CHECKED)
    trajectory, declared = tuple(trajectory_checks(settings)), tuple(declared_checks(settings))
    results = [(*scored(declared, run), *scored(trajectory, run)) for run in made]
    gating = frozenset(check.name for check in declared if check.gates)

    def card(found: tuple[Result, ...]) -> object:
        return scorecard(found, how.rubric, gating, how.deciding, sampled=True)

    yield "reading: spans into steps, grouped into a run", best(lambda: [run_of(spans) for spans in traces], runs)
    yield (
        f"trajectory: {len(trajectory)} measures without a reference",
        best(lambda: [scored(trajectory, run) for run in made], runs),
    )
    yield f"checks: {len(declared)} declared ones", best(lambda: [scored(declared, run) for run in made], runs)
    yield "scorecard: composite, gates, verdict", best(lambda: [card(found) for found in results], runs)


def ours(compared: Sequence[Pair], order: Order) -> tuple[float, list[bool]]:
    """Return the µs a trajectory, and each pair's answer."""
    asked = [(one.run, msgspec.structs.replace(one.reference, order=order)) for one in compared]
    answers = [tool_call_accuracy(run, reference).outcome is Outcome.PASS for run, reference in asked]
    return best(lambda: [tool_call_accuracy(run, reference) for run, reference in asked], len(asked)), answers


def theirs(compared: Sequence[Pair]) -> dict[str, Any]:
    """Return by match mode the seconds and answers of ``agentevals``.

    Raises:
        UnavailableError: its environment cannot be built here.
    """
    environment = python_environment("agentevals", BESIDE)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "pairs.json"
        written(compared, file)
        command = [str(word) for word in (environment / "bin" / "python", BESIDE / "program.py", file, str(ROUNDS))]
        quiet = {"LANGSMITH_TRACING": "false", "PATH": ""}
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300, env=quiet)
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def version() -> str:
    """Return the version of ``agentevals`` that is pinned."""
    (found,) = re.findall(r"^agentevals==(\S+)", (BESIDE / "requirements.txt").read_text("utf-8"), re.MULTILINE)
    return str(found)


class Mode(msgspec.Struct, frozen=True):
    """Both sides of one match mode. ``agree`` is of those pairs of which both should say the same, ``differ`` counts the others."""

    name: str
    ours_us: float
    theirs_us: float
    passing: int
    agree: int
    alike: int
    differ: int


def modes(compared: Sequence[Pair]) -> list[Mode]:
    """Score the pairs on both sides."""
    answered = theirs(compared)
    found = []
    for name, order in MODES.items():
        took, answers = ours(compared, order)
        rows = list(zip(compared, answers, answered[name]["answers"], strict=True))
        alike = [one == other for pair, one, other in rows if pair.alike]
        differ = sum(one != other for pair, one, other in rows if not pair.alike)
        seconds = answered[name]["seconds"]
        found.append(Mode(name, took, 1e6 * seconds / len(compared), sum(answers), sum(alike), len(alike), differ))
    return found


def main(runs: int) -> int:
    """Measure and print; 1 where both sides differ on a pair of which they should say the same."""
    lines = [f"scoring in code, {runs} runs of 10 spans, best of {ROUNDS}:"]
    costs = list(parts(runs))
    lines += [f"{name:52} {cost:8.1f} µs a run" for name, cost in (*costs, ("together", sum(cost for _, cost in costs)))]
    compared = pairs()
    lines += ["", f"against a reference, {len(compared)} pairs of real trajectories, beside agentevals {version()}:"]
    try:
        both = modes(compared)
    except UnavailableError as missing:
        both = []
        lines.append(f"nothing to compare with: {missing}")
    for one in both:
        agreed = f"{one.agree} of {one.alike} alike" + (f", {one.differ} differ by failed calls" if one.differ else "")
        ratio = one.theirs_us / one.ours_us
        lines.append(f"{one.name:10} {one.ours_us:7.1f} µs   theirs {one.theirs_us:7.1f} µs   {ratio:5.1f} times ours   {agreed}")
    sys.stdout.write("\n".join(lines) + "\n")
    return int(any(one.agree != one.alike for one in both))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    sys.exit(main(parser.parse_args().runs))
