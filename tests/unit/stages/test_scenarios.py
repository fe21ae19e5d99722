"""Ten recorded traces give the runs that a person read out of them. The expectations were written by reading, not by running."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from assembly_law import grading
from recordings import CORPORA
from worlds import World

from collectors.otlp import protobuf
from collectors.replay import requests_of
from pipeline.model.run import Run
from pipeline.model.span import Span
from pipeline.model.time import SECOND

SCENARIOS = Path(__file__).parents[2] / "scenarios"
NAMES = sorted(path.parent.name for path in SCENARIOS.glob("*/expected.json"))


def test_there_are_ten_scenarios() -> None:
    assert len(NAMES) == 10


def runs_of_file(path: Path) -> tuple[list[Run], set[str]]:
    """The runs that come out of a file, and the traces that are no agent's. Everything arrives a second after the last end."""
    requests = requests_of(path)
    spans = [span for request in requests for span in protobuf.decode(request.SerializeToString(), "default", 1).spans]
    received = max(span.end_ns for span in spans) + SECOND
    arrived = [span for request in requests for span in protobuf.decode(request.SerializeToString(), "default", received).spans]

    async def play() -> World:
        world = World(grading())
        world.now = received
        await world.arrive(arrived)
        await world.settle()
        return world

    world = asyncio.run(play())
    none = {trace_id for (_, trace_id), version in world.store.traces.items() if version.not_an_agent_run}
    assert not world.store.dead_letters
    return [version.run for version in world.store.live_runs()], {original(arrived, trace_id) for trace_id in none}


def original(spans: list[Span], trace_id: str) -> str:
    """The trace id as the file has it."""
    named = (str(span.attributes.get("tracegrade.original_trace_id", trace_id)) for span in spans if span.trace_id == trace_id)
    return next(named)


def as_expected(run: Run, expected: dict[str, Any]) -> dict[str, Any]:
    """What the run says, in the words of the expectation, as far as the expectation says anything."""
    calls = [
        {
            "name": call.name,
            "arguments": call.arguments,
            "result": call.result,
            "error": _outcome(call.error, wanted),
            **({"executed": False} if wanted.get("executed") is False else {}),
        }
        for call, wanted in zip(run.tool_calls, expected["tool_calls"], strict=False)
    ]
    said = {
        "agent": run.place.cohort.agent,
        "version": run.place.cohort.version,
        "environment": run.place.cohort.environment,
        "agents_below": [agent for agent in run.agents if agent != run.place.cohort.agent],
        "request": run.request,
        "answer": run.answer,
        "completed": run.completed,
        "ended": run.ended,
        "tool_calls": calls,
        "tools_offered": sorted(tool.name for tool in run.tools) or None,
        "model_calls": run.model_calls,
        "input_tokens": run.usage.input,
        "output_tokens": run.usage.output,
        "models": list(run.models),
        "conversation_id": run.conversation_id,
        "steps": len(run.steps),
        "minute": datetime.fromtimestamp(run.place.minute_ns // SECOND, UTC).strftime("%Y-%m-%dT%H:%M:00Z"),
    }
    assert len(run.tool_calls) == len(expected["tool_calls"])
    assert expected["system_contains"] is None or expected["system_contains"] in run.system
    return said


def _outcome(error: str | None, wanted: dict[str, Any]) -> bool | None:
    """Null is expected where the trace holds no sign of what became of the call; then nothing may be claimed."""
    return None if wanted["error"] is None and error is None else error is not None


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_trace_gives_the_expected_runs(name: str) -> None:
    expected = json.loads((SCENARIOS / name / "expected.json").read_text())
    runs, none = runs_of_file(CORPORA / expected["source"])
    by_request = {(run.steps[0].start_ns, run.run_id): run for run in runs}
    assert len(runs) == len(expected["runs"])
    for run, wanted in zip([by_request[key] for key in sorted(by_request)], expected["runs"], strict=True):
        said = as_expected(run, wanted)
        wanted["tools_offered"] = sorted(wanted["tools_offered"]) if wanted["tools_offered"] else None
        assert said == {key: wanted[key] for key in said}
    assert none == set(expected["not_an_agent_run"])
