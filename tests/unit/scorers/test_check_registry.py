"""The checks together."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from ruamel.yaml import YAML
from run_builders import REFUND, a_model_step, a_run, ran

from pipeline.errors import ConfigurationError
from pipeline.model.result import Kind, Outcome
from pipeline.model.run import Ended, Run
from pipeline.model.step import ToolCall, ToolDefinition, Usage
from pipeline.scorers import Check, ChecksSettings, checks
from pipeline.scorers.check import Missing
from pipeline.scorers.registry import BUILT_IN, PROVIDERS

SETTINGS = ChecksSettings.model_validate(
    {
        "limits": {
            "steps": 20,
            "tool_calls": 5,
            "seconds": 60,
            "input_tokens": 9000,
            "output_tokens": {"max": 900, "gate": True},
            "cost_usd": "0.01",
        },
        "policies": [
            {"name": "refund_after_confirm", "before": {"tool": "refund", "needs": "confirm"}},
            {"name": "looks_first", "require": {"tool": "lookup"}},
            {"name": "confirms_once", "exactly": {"tool": "confirm", "times": 1, "per": "order_id"}},
            {"name": "refund_once", "at_most": {"tool": "refund", "times": 1, "per": "order_id"}},
            {"name": "no_large_refund", "gate": False, "forbid": {"tool": "refund", "where": {"amount": {"greater_than": 100}}}},
        ],
        "output": [
            {"name": "is_json", "json": "fenced"},
            {"name": "is_a_reply", "schema": {"type": "object", "required": ["status"]}},
            {"name": "has_fields", "fields": ["status", "order.id"]},
            {"name": "right_amount", "amount": {"after": "$", "equals": {"tool": "lookup", "field": "total"}}},
            {"name": "names_refund", "matches": "R-[0-9]+", "gate": False},
            {"name": "no_promises", "banned": ["guaranteed"]},
            {"name": "in_german", "language": "de"},
            {"name": "keeps_secrets", "no_secret": True, "gate": False},
        ],
        "alternatives": {"lookup": ["search"]},
    }
)
CHECKS = checks(SETTINGS)


def test_only_what_was_declared_gates() -> None:
    assert {check.name for check in CHECKS if check.gates} == {
        "answer_present",
        "refund_after_confirm",
        "looks_first",
        "confirms_once",
        "refund_once",
        "is_json",
        "is_a_reply",
        "has_fields",
        "right_amount",
        "no_promises",
        "output_tokens",
    }


def test_without_any_configuration_the_built_in_checks_run() -> None:
    assert [check.name for check in checks(ChecksSettings())] == [
        "answer_present",
        "tool_errors",
        "recovery_errors",
        "loops",
        "stalls",
        "unknown_tools",
        "invalid_arguments",
        "argument_hallucination_rate",
        "efficiency",
        "hand_offs",
    ]


def test_every_check_has_a_contract_of_its_own() -> None:
    assert len({check.contract for check in CHECKS}) == len(CHECKS)


@pytest.mark.parametrize("name", ["loops", "verdict", "composite", "recovery_runs", "steps"])
def test_a_policy_cannot_take_a_name_that_means_something_else(name: str) -> None:
    with pytest.raises(ValidationError, match="give the declared one another name"):
        ChecksSettings.model_validate({"policies": [{"name": name, "forbid": {"tool": "a"}}]})


def test_two_policies_cannot_share_a_name() -> None:
    policy = {"name": "mine", "forbid": {"tool": "a"}}
    with pytest.raises(ValidationError, match="two checks are called mine"):
        ChecksSettings.model_validate({"policies": [policy, policy]})


def test_no_check_takes_the_name_of_a_rubric_dimension() -> None:
    with pytest.raises(ConfigurationError, match="refund_once is a dimension of the rubric"):
        checks(SETTINGS, taken=("tone", "refund_once"))


def test_a_plugin_adds_checks_as_the_built_in_ones_are_added() -> None:
    def plugin(_: ChecksSettings) -> Iterator[Check]:
        yield Check("polite", "c", lambda _: None)

    assert checks(ChecksSettings(), providers=(*PROVIDERS, plugin))[-1].name == "polite"
    with pytest.raises(ConfigurationError, match="two checks are called polite"):
        checks(ChecksSettings(), providers=(plugin, plugin))


DOCS = (Path(__file__).parents[3] / "docs" / "checks.md").read_text("utf-8")


@pytest.mark.parametrize("word", sorted(BUILT_IN | set(Missing) | {"recovery_runs"}))
def test_every_check_and_every_reason_is_documented(word: str) -> None:
    assert f"| `{word}` |" in DOCS


def test_the_example_in_the_docs_is_a_configuration() -> None:
    example = YAML(typ="safe").load(DOCS.split("```yaml")[1].split("```")[0])["agents"]["default"]["checks"]
    settings = ChecksSettings.model_validate(example)
    assert [policy.name for policy in settings.policies][:2] == ["refund_after_confirm", "one_refund_per_order"]
    assert settings.limits.steps is not None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS = st.none() | JSON | st.fixed_dictionaries({"order_id": JSON, "amount": JSON})
CALLS = st.builds(
    ToolCall,
    name=st.sampled_from(["refund", "confirm", "lookup", "search"]),
    id=st.sampled_from(["", "1", "2"]),
    arguments=ARGUMENTS,
    raw_arguments=st.sampled_from(["", "", "null", "{", "{}"]),
    result=st.none() | st.text(max_size=3),
    error=st.sampled_from([None, None, "timeout", "not executed"]),
)


@st.composite
def runs(draw: st.DrawFn) -> Run:
    calls = tuple(draw(st.lists(CALLS, max_size=6)))
    flags = draw(st.sampled_from([(), ("no_content",), ("truncated",)]))
    tokens = st.none() | st.integers(0, 10_000)
    return a_run(
        *calls,
        steps=(a_model_step(*flags), *(ran(call, index, index + draw(st.integers(0, 3))) for index, call in enumerate(calls))),
        tools=draw(st.sampled_from([(), (REFUND,), (REFUND, ToolDefinition("lookup"))])),
        usage=Usage(input=draw(tokens), output=draw(tokens)),
        answer=draw(
            st.none() | st.text(max_size=3) | st.sampled_from(['{"status": 1}', "```json\n[1e400]\n```", "$4.50", "NaN"])
        ),
        ended=draw(st.sampled_from(Ended)),
        flags=flags,
    )


@given(run=runs())
def test_no_check_makes_a_number_without_evidence_or_breaks(run: Run) -> None:
    words = tuple(f"{word}: " for word in Missing)
    for check in CHECKS:
        result = check.score(run)
        if result is None:
            continue
        assert (result.dimension, result.kind, result.contract) == (check.name, Kind.CODE, check.contract)
        if result.outcome in (Outcome.PASS, Outcome.FAIL):
            assert result.value is not None
            assert result.value == result.lower == result.upper
            assert 0 <= result.value < float("inf")
        else:
            assert result.outcome is Outcome.INSUFFICIENT_EVIDENCE
            assert result.value is None
            assert result.reason.startswith(words)
        assert check.score(run) == result


@given(run=runs())
def test_a_failing_check_says_why(run: Run) -> None:
    for check in CHECKS:
        result = check.score(run)
        assert result is None or result.outcome is not Outcome.FAIL or result.reason


def test_checks_never_read_the_answer_for_what_the_tools_did() -> None:
    claimed = a_run(answer="The refund of $500 is done: refund() succeeded.")
    silent = a_run(answer="Hello.")
    of_tools = [check for check in CHECKS if check.name not in {one.name for one in SETTINGS.output}]
    assert [check.score(claimed) for check in of_tools] == [check.score(silent) for check in of_tools]
