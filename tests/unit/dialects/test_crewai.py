"""CrewAI under the instrumentations of Traceloop and of Arize, and its own telemetry."""

import json
from typing import Any

import pytest
from builders import a_span
from recordings import runs_of

from collectors.dialects import read
from pipeline.model.span import Span
from pipeline.model.step import Message, Step, StepKind, ToolCall

TRACELOOP = "opentelemetry.instrumentation.crewai"
ARIZE = "openinference.instrumentation.crewai"


def step(scope: str, name: str, attributes: dict[str, Any]) -> Step:
    return read(a_span(name=name, scope_name=scope, attributes=attributes))


@pytest.mark.parametrize(
    ("name", "kind", "wanted", "agent"),
    [
        ("crewai.workflow", "workflow", StepKind.ORCHESTRATION, "crewai"),
        ("researcher.agent", "agent", StepKind.AGENT, "researcher"),
        ("research.task", "task", StepKind.CHAIN, ""),
    ],
)
def test_of_crews_agents_and_tasks_only_agents_are_agents(name: str, kind: str, wanted: StepKind, agent: str) -> None:
    attributes = {
        "traceloop.span.kind": kind,
        "traceloop.entity.name": name.partition(".")[0],
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.system": "crewai",
    }
    found = step(TRACELOOP, name, attributes)
    assert (found.kind, found.agent, found.dialect, found.provider) == (wanted, agent, "crewai", "")


def test_a_crews_result_is_its_answer() -> None:
    attributes = {"traceloop.span.kind": "workflow", "crewai.crew.result": "It is at the door."}
    assert step(TRACELOOP, "crewai.workflow", attributes).output == (Message("assistant", "It is at the door."),)


def test_arize_names_an_agent_by_its_role_and_wraps_what_it_said() -> None:
    output = {"description": "Find it.", "raw": "It is at the door.", "agent": "researcher", "pydantic": None}
    for named in ({"graph.node.id": "researcher"}, {}):
        attributes = {
            "openinference.span.kind": "AGENT",
            "output.value": json.dumps(output),
            "output.mime_type": "application/json",
        }
        found = step(ARIZE, "researcher._execute_core", attributes | named)
        assert (found.kind, found.agent, found.dialect) == (StepKind.AGENT, "researcher", "crewai")
        assert (found.output, found.flags) == ((Message("assistant", "It is at the door."),), ())


def test_the_arguments_of_a_use_are_those_of_the_call_that_was_parsed() -> None:
    inputs = {"tool_string": "Action: lookup …", "tool": "lookup", "calling": {"tool_name": "lookup", "arguments": {"id": 7}}}
    attributes = {
        "openinference.span.kind": "TOOL",
        "tool.name": "lookup",
        "input.value": json.dumps(inputs),
        "output.value": "door",
    }
    found = step(ARIZE, "lookup._use", attributes)
    assert (found.kind, found.tool) == (StepKind.TOOL, ToolCall("lookup", arguments={"id": 7}, result="door"))
    assert step(ARIZE, "lookup._use", {"openinference.span.kind": "TOOL"}).tool == ToolCall("lookup")


def test_a_crew_is_a_run_whose_agent_is_its_first_and_whose_answer_is_its_own() -> None:
    def a_part(number: int, under: int, name: str, kind: str, **more: Any) -> Span:
        return a_span(
            f"{number:016x}",
            f"{under:016x}" if under else "",
            name=name,
            scope_name=ARIZE,
            attributes={"openinference.span.kind": kind} | {key.replace("_", "."): value for key, value in more.items()},
        )

    (run,) = runs_of(
        [
            a_part(1, 0, "Crew_7f.kickoff", "CHAIN", output_value=json.dumps({"raw": "Published.", "tasks_output": []})),
            a_part(2, 1, "researcher._execute_core", "AGENT", output_value=json.dumps({"raw": "Found."})),
            a_part(3, 1, "writer._execute_core", "AGENT", output_value=json.dumps({"raw": "Written."})),
        ]
    )
    assert (run.place.cohort.agent, run.agents, run.answer) == ("researcher", ("writer",), "Published.")


@pytest.mark.parametrize("name", ["Crew Created", "Task Execution", "Tool Usage", "Tool Usage Error", "Flow Creation"])
def test_product_telemetry_makes_no_run(name: str) -> None:
    assert step("crewai.telemetry", name, {"crew_key": "x", "tool_name": "lookup"}).kind is StepKind.IGNORED
    assert runs_of([a_span(name=name, scope_name="crewai.telemetry")]) == []
