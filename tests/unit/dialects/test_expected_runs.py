"""Every recorded file gives the runs that were expected of it before the product read it; with ``-s`` the table is printed.

Expectations are in ``tests/expected``: of ``live`` made from what the tools and the model server wrote down (``from_truth.py``), of ``played``
from the script of the model, of all others written by reading the trace. Where a trace does not hold the truth, the expectation is what it holds, with the truth and the reason beside it.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from expected.columns import COLUMNS, NOT_EXECUTED, value_of
from expected.from_truth import FRAMEWORKS
from expected.from_truth import expected as from_truth
from hypothesis import given, settings
from hypothesis import strategies as st
from recordings import CORPORA, arrived, recordings, runs_of
from ruamel.yaml import YAML

from pipeline.model.run import Run

EXPECTED = Path(__file__).parents[2] / "expected"
FILES = {path.relative_to(CORPORA).with_suffix("").as_posix(): path for path in recordings()}
Columns = dict[str, list[Any]]


@cache
def expectations() -> dict[str, dict[str, Any]]:
    """By the file's name without its suffix."""
    yaml = YAML(typ="safe")
    kept = {path: yaml.load(path) for path in EXPECTED.rglob("*.yaml")}
    return {
        f"{path.relative_to(EXPECTED).with_suffix('').as_posix()}/{name}": one
        for path, ones in kept.items()
        for name, one in ones.items()
    }


def wanted(run: dict[str, Any], found: list[Run]) -> Columns:
    """An expected run by column; what it does not mention is nothing."""
    calls, tokens = run.get("calls", []), run.get("tokens", {})
    conversation = run.get("conversation", "")
    if conversation == "one":
        conversation = found[0].conversation_id or "one"
    return {
        "agent": [run["agent"], run.get("agents", []), conversation, run.get("request", ""), sorted(run.get("tools", ()))],
        "calls": [*((call["name"], call.get("error") != NOT_EXECUTED) for call in calls), run.get("handed_over", False)],
        "arguments": [*(call.get("arguments") for call in calls), run.get("no_content", False)],
        "results": [(value_of(call.get("result")), call.get("error")) for call in calls],
        "answer": [value_of(run.get("answer"))],
        "tokens": [run.get("model_calls", 0), *(tokens.get(name) for name in ("input", "output", "cached", "reasoning"))],
        "ended": [run["ended"], run.get("error", run["ended"] in ("error", "limit"))],
    }


def found(run: Run, expected: dict[str, Any]) -> Columns:
    """A run by column. Tools that were offered are compared where they were written down; of an error without words, that there is one."""
    usage, offered = run.usage, sorted(tool.name for tool in run.tools)
    return {
        "agent": [
            run.place.cohort.agent,
            list(run.agents),
            run.conversation_id,
            run.request,
            offered if "tools" in expected else [],
        ],
        "calls": [*((call.name, call.error != NOT_EXECUTED) for call in run.tool_calls), "handoff" in run.flags],
        "arguments": [*(call.arguments for call in run.tool_calls), "no_content" in run.flags],
        "results": [(value_of(call.result), call.error) for call in run.tool_calls],
        "answer": [value_of(run.answer)],
        "tokens": [run.model_calls, usage.input, usage.output, usage.cached, usage.reasoning],
        "ended": [str(run.ended), run.error if "error" in expected else run.error is not None],
    }


def differences(name: str, runs: list[Run]) -> dict[str, str]:
    """By column, what was expected and what was found instead."""
    expected = expectations()[name].get("runs", [])
    if len(expected) != len(runs):
        return dict.fromkeys(COLUMNS, f"{len(expected)} runs expected, {len(runs)} found")
    unlike: dict[str, str] = {}
    for one, run in zip(expected, runs, strict=True):
        want, have = wanted(one, runs), found(run, one)
        unlike |= {
            column: f"expected {want[column]}\n      found {have[column]}" for column in COLUMNS if want[column] != have[column]
        }
    return unlike


class Row(NamedTuple):
    """A file in the table."""

    name: str
    unlike: dict[str, str]
    short_of: dict[str, Any]
    """Columns in which the trace does not hold the truth."""

    def cells(self) -> Iterator[str]:
        """By column: as it was, as far as the trace tells, or something else."""
        for column in COLUMNS:
            yield "DIFFERS" if column in self.unlike else "as traced" if column in self.short_of else "equal"


def table() -> list[Row]:
    """All files."""
    return [
        Row(name, differences(name, runs_of(arrived(path))), expectations()[name].get("truth", {}))
        for name, path in FILES.items()
    ]


def report(rows: list[Row]) -> Iterator[str]:
    """Yield the lines of the table, its totals, and each reason once."""
    width = max(len(row.name) for row in rows)
    yield " ".join((f"\n{'file':{width}}", *(f"{column:9}" for column in COLUMNS)))
    yield from (" ".join((f"{row.name:{width}}", *(f"{cell:9}" for cell in row.cells()))) for row in rows)
    unlike = sum(bool(row.unlike) for row in rows)
    short = sum(bool(row.short_of) and not row.unlike for row in rows)
    yield f"{len(rows)} files: {len(rows) - short - unlike} equal to the truth, {short} as far as the trace tells, {unlike} differ"
    yield from (f"  as traced: {why}" for why in sorted({why for row in rows for why in expectations()[row.name].get("why", {})}))


def test_there_is_an_expectation_for_every_file_and_a_file_for_every_expectation() -> None:
    assert set(expectations()) == set(FILES)


def test_every_file_gives_the_runs_that_it_should() -> None:
    rows = table()
    print(*report(rows), sep="\n")  # noqa: T201 - with -s it is read
    assert {row.name: row.unlike for row in rows if row.unlike} == {}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_expectations_of_live_recordings_are_what_the_truth_says(framework: str) -> None:
    kept = {name: one for name, one in expectations().items() if name.startswith(f"live/{framework}/")}
    assert kept == {f"live/{framework}/{name}": one for name, one in from_truth(framework).items()}


def test_where_the_truth_is_not_expected_it_stands_beside_with_a_reason() -> None:
    for name, one in expectations().items():
        assert set(one.get("truth", {})) == {column for columns in one.get("why", {}).values() for column in columns}, name


def test_what_arrives_backwards_and_twice_gives_the_same_runs() -> None:
    for name, path in FILES.items():
        records = arrived(path)
        assert differences(name, runs_of([*reversed(records), *records])) == {}, name


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_the_order_of_arrival_and_double_delivery_change_nothing(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(FILES)))
    records = arrived(FILES[name])
    order = data.draw(st.permutations(range(len(records))))
    again = data.draw(st.permutations(range(len(records))))
    assert differences(name, runs_of(records[index] for index in (*order, *again))) == {}


@pytest.mark.parametrize("folder", ["openai-openllmetry", "openai-v2"])
def test_the_history_that_a_bare_loop_replays_is_there_to_be_read(folder: str) -> None:
    last = runs_of(arrived(CORPORA / "live" / folder / "refund_ok.jsonl"))[-1]
    assert [message.role for message in last.messages] == ["user", "assistant", "tool", "assistant", "tool"]
    assert last.system == "You are a support agent. Refund only orders that exist."
