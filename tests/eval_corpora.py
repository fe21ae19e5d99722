"""How scores in code alone tell good runs from bad ones, on real runs with a label beside each: ``make eval-corpora``.

The label is taken out of a document before it is turned into spans, with all that follows from it. What was fixed beforehand, and fails
when it does not hold: the lower bound of two areas is above a half. Everything else is printed.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from auroc import Auroc, auroc
from recordings import PROJECT, runs_of

from collectors.otlp import protobuf
from collectors.replay import agentdojo, tau_bench
from pipeline.model.reference import Order, Reference, ReferenceCall
from pipeline.model.run import Run
from pipeline.model.time import SECOND
from pipeline.scorers import Check, ChecksSettings, checks
from pipeline.scorers.check import Finding
from pipeline.scorers.reference.matching import tool_call_accuracy
from pipeline.scorers.reference.selection import plan_adherence, tool_selection_f1

LABELLED = Path(__file__).parent / "labelled"
WRITES = ("book_reservation", "cancel_reservation", "send_certificate", "update_reservation_")
"""How the names of tau-bench's airline tools begin that change its records."""
LABELS = frozenset({"reward", "reward_info", "utility", "security"})
Measure = Callable[[Run, Reference], Finding | None]


class Labelled(NamedTuple):
    """A run, what it should have done, and whether people's own check says that it was good."""

    run: Run
    reference: Reference
    good: bool


class Row(NamedTuple):
    """A line of the table: a score, over how many runs that have it."""

    corpus: str
    score: str
    good: int
    bad: int
    area: Auroc | None
    fixed: bool


def tau_runs() -> Iterator[Labelled]:
    """tau-bench, airline: good is a reward of 1."""
    path = LABELLED / "tau-bench" / "gpt-4o-airline.sample.jsonl"
    for document in _documents(path):
        actions = [ReferenceCall(one["name"], one["kwargs"]) for one in document["info"]["task"]["actions"]]
        good = document["reward"] == 1
        yield Labelled(_run(tau_bench.requests(without_label(document), path.name)), Reference(tuple(actions)), good)


def agentdojo_runs() -> Iterator[Labelled]:
    """AgentDojo: good is that the user's task was solved, and no attack succeeded."""
    folder = LABELLED / "agentdojo"
    truth = msgspec.json.decode((folder / "ground_truth_v1.json").read_bytes())
    for document in _documents(folder / "runs.sample.jsonl"):
        tools = truth[document["suite_name"]][document["user_task_id"]]["tools"]
        reference = Reference(tuple(ReferenceCall(one["function"], one["args"]) for one in tools))
        good = document["utility"] and not (document["attack_type"] and document["security"])
        yield Labelled(_run(agentdojo.requests(without_label(document), "")), reference, bool(good))


def without_label(document: Any) -> Any:
    """Return a document without its label, however deep it stands."""
    if isinstance(document, dict):
        return {key: without_label(value) for key, value in document.items() if key not in LABELS}
    return [without_label(value) for value in document] if isinstance(document, list) else document


def writes(measure: Measure) -> Measure:
    """Return a measure that looks at calls only that change records."""

    def measured(run: Run, reference: Reference) -> Finding | None:
        calls = tuple(call for call in run.tool_calls if call.name.startswith(WRITES))
        wanted = tuple(call for call in reference.calls if call.tool.startswith(WRITES))
        return measure(msgspec.structs.replace(run, tool_calls=calls), Reference(wanted, order=Order.ANY))

    return measured


def table() -> list[Row]:
    """Measure everything."""
    accuracy = "the writing calls equal the reference's"
    tau = {accuracy: writes(tool_call_accuracy), "tool_selection_f1": tool_selection_f1, "plan_adherence": plan_adherence}
    dojo = {"tool_selection_f1": tool_selection_f1, "tool_call_accuracy": tool_call_accuracy, "plan_adherence": plan_adherence}
    return [
        *_rows("tau-bench", list(tau_runs()), tau | _unreferenced(), accuracy),
        *_rows("agentdojo", list(agentdojo_runs()), dojo | _unreferenced(), "tool_selection_f1"),
    ]


def _unreferenced() -> dict[str, Measure]:
    """Every check that a run has without any configuration, the better the higher."""
    limits = {"steps": 1_000_000, "tool_calls": 1_000_000}
    found = checks(ChecksSettings.model_validate({"limits": limits}))
    return {f"{check.name} (no reference)": _alone(check) for check in found}


def _alone(check: Check) -> Measure:
    return lambda run, _: check.measure(run)


_MORE_IS_BETTER = frozenset({"answer_present", "recovery_errors"})


def _rows(corpus: str, runs: list[Labelled], measures: Mapping[str, Measure], fixed: str) -> Iterator[Row]:
    for name, measure in measures.items():
        sign = 1 if "(no reference)" not in name or name.split(" ")[0] in _MORE_IS_BETTER else -1
        values: dict[bool, list[float]] = {True: [], False: []}
        for one in runs:
            finding = measure(one.run, one.reference)
            if finding is not None and finding.value is not None:
                values[one.good].append(sign * finding.value)
        yield Row(corpus, name, len(values[True]), len(values[False]), auroc(values[True], values[False]), name == fixed)


def _documents(path: Path) -> list[Any]:
    return [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]


def _run(requests: Iterator[Any]) -> Run:
    spans = [span for one in requests for span in protobuf.decode(one.SerializeToString(), PROJECT, 1).items]
    received = max(span.end_ns for span in spans) + SECOND
    (run,) = runs_of([msgspec.structs.replace(span, received_ns=received) for span in spans])
    return run


def main() -> int:
    """Print the table; 1 where a score that was fixed beforehand tells nothing."""
    rows = table()
    print(f"{'corpus':<10} {'score':<42} {'good':>4} {'bad':>4}  AUROC  95 %")  # noqa: T201
    for row in rows:
        area = "no value on one side" if row.area is None else f"{row.area.area:.3f}  {row.area.lower:.3f}-{row.area.upper:.3f}"
        print(f"{row.corpus:<10} {row.score:<42} {row.good:>4} {row.bad:>4}  {area}{'  *' if row.fixed else ''}")  # noqa: T201
    print("* fixed beforehand: fails where the lower bound is not above 0.5")  # noqa: T201
    return int(any(row.fixed and (row.area is None or row.area.lower <= 0.5) for row in rows))


if __name__ == "__main__":
    sys.exit(main())
