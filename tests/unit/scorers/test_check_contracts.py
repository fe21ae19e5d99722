"""What each check's results are kept under. A definition that changes starts a new series of results, so that it never does so by accident."""

from typing import Any

import pytest
from run_builders import a_failure, a_run

from pipeline.model.contract import Contract
from pipeline.model.result import Outcome, Verdict
from pipeline.scorers import ChecksSettings, checks
from pipeline.scorers.check import Check
from pipeline.scorers.prices import PriceTable
from pipeline.scorers.reading import Source
from pipeline.scorers.recovery import recovery_runs

DECLARED: dict[str, Any] = {
    "limits": {"steps": "20.0", "seconds": {"max": 60, "gate": True}, "cost_usd": {"max": "0.50", "gate": True}},
    "policies": [
        {"name": "wait", "before": {"tool": "refund", "needs": "confirm", "where": {"to": {"in": ["a", 1]}}}},
        {"name": "look", "require": {"tool": "lookup"}},
        {"name": "once", "exactly": {"tool": "confirm", "times": 1, "per": "order_id"}},
        {"name": "few", "at_most": {"tool": "refund", "times": 2}},
        {
            "name": "small",
            "gate": False,
            "safety": False,
            "forbid": {"tool": "refund", "where": {"amount": {"greater_than": 0.1}}},
        },
    ],
    "output": [
        {"name": "is_json", "json": "fenced"},
        {"name": "is_reply", "schema": {"type": "object"}},
        {"name": "has_fields", "fields": ["status", "order.id"]},
        {"name": "right_amount", "amount": {"after": "$", "within": 0.01, "equals": {"tool": "lookup", "field": "total"}}},
        {"name": "names_refund", "matches": "R-[0-9]+", "gate": False},
        {"name": "no_promises", "banned": ["guaranteed"]},
        {"name": "in_german", "language": "de"},
        {"name": "no_secrets", "no_secret": True},
    ],
    "records": [
        {
            "name": "refunded",
            "source": "payments",
            "each": "refund",
            "where": {"amount": {"in": [1, 2.5]}},
            "key": {"order": "arguments.id"},
            "records": "page.refunds",
            "identity": {"id": "arguments.id"},
            "count": {"at_least": 1},
            "unique": ["id"],
            "amount": {"field": "amount", "equals": "arguments.amount", "within": 0.01},
            "state": {"state": {"in": ["done"]}},
            "gate": False,
            "safety": True,
        },
    ],
    "efficiency": {"task_kind": "app.task", "baseline": {"refund": 2}},
    "alternatives": {"lookup": ["search", "find"]},
}
PAYMENTS = Source("payments", {"kind": "http"})
OUTPUT = {"rule": "output", "version": 1}


def declared() -> dict[str, Check]:
    settings = ChecksSettings.model_validate(DECLARED)
    return {check.name: check for check in checks(settings, sources={"payments": PAYMENTS})}


@pytest.mark.parametrize(
    ("name", "definition", "gates"),
    [
        ("answer_present", {"rule": "final answer not blank", "version": 3}, True),
        ("tool_errors", {"rule": "failed calls / executed calls", "version": 1}, False),
        (
            "recovery_errors",
            {
                "rule": "errors with a later success of the tool or an alternative / errors",
                "version": 1,
                "alternatives": {"lookup": ["find", "search"]},
            },
            False,
        ),
        ("loops", {"rule": "repeated calls since whose equal nothing new was returned", "version": 1}, False),
        ("unknown_tools", {"rule": "calls of tools not offered", "version": 1}, False),
        ("invalid_arguments", {"rule": "any call does not validate against its tool's schema", "version": 1}, False),
        (
            "stalls",
            {"rule": "replies without a tool call that repeat one of the same agent, nothing new since", "version": 1},
            False,
        ),
        (
            "argument_hallucination_rate",
            {
                "rule": "values of arguments in no earlier user message, system prompt, tool result or schema / values of arguments",
                "version": 1,
                "normalisation": "NFC, case and spacing folded, numbers by value, dates by day",
            },
            False,
        ),
        (
            "efficiency",
            {
                "rule": "executed tool calls at most the baseline of the kind of task",
                "version": 1,
                "task_kind": "app.task",
                "baseline": {"refund": 2},
            },
            False,
        ),
        ("hand_offs", {"rule": "hand-offs, counted", "version": 1}, False),
        ("cost_usd", {"rule": "at most", "version": 1, "max": "0.5", "prices": PriceTable().version}, True),
        (
            "refunded",
            {
                "rule": "record",
                "version": 1,
                "source": {"name": "payments", "kind": "http"},
                "each": "refund",
                "where": {"amount": {"in": ["1", "2.5"]}},
                "key": {"order": "arguments.id"},
                "records": "page.refunds",
                "identity": {"id": "arguments.id"},
                "count": {"at_least": 1},
                "unique": ["id"],
                "amount": {"field": "amount", "equals": "arguments.amount", "within": "0.01"},
                "state": {"state": {"in": ["done"]}},
            },
            False,
        ),
        ("steps", {"rule": "at most", "version": 1, "max": "2E+1"}, False),
        ("seconds", {"rule": "at most", "version": 1, "max": "6E+1"}, True),
        (
            "wait",
            {"rule": "Before", "version": 1, "tool": "refund", "needs": "confirm", "where": {"to": {"in": ["a", "1"]}}},
            True,
        ),
        ("look", {"rule": "Require", "version": 1, "tool": "lookup"}, True),
        ("once", {"rule": "Exactly", "version": 1, "tool": "confirm", "times": 1, "per": "order_id"}, True),
        ("few", {"rule": "AtMost", "version": 1, "tool": "refund", "times": 2}, True),
        ("small", {"rule": "Forbid", "version": 1, "tool": "refund", "where": {"amount": {"greater_than": "0.1"}}}, False),
        ("is_json", {**OUTPUT, "json": "fenced"}, True),
        ("is_reply", {**OUTPUT, "schema": {"type": "object"}}, True),
        ("has_fields", {**OUTPUT, "fields": ["status", "order.id"]}, True),
        (
            "right_amount",
            {**OUTPUT, "amount": {"after": "$", "within": "0.01", "equals": {"tool": "lookup", "field": "total"}}},
            True,
        ),
        ("names_refund", {**OUTPUT, "matches": "R-[0-9]+"}, False),
        ("no_promises", {**OUTPUT, "banned": ["guaranteed"]}, True),
        ("in_german", {**OUTPUT, "language": "de"}, False),
        ("no_secrets", {**OUTPUT, "no_secret": True}, True),
    ],
)
def test_the_definition_of_a_check(name: str, definition: dict[str, Any], gates: bool) -> None:
    check = declared()[name]
    assert check.terms == Contract(kind="code", dimension=name, check_definition=definition)
    assert check.contract == check.terms.hash
    assert check.gates is gates


def test_policies_and_secrets_are_safety_unless_it_is_written_and_rules_of_form_are_schema_checks() -> None:
    made = declared()
    assert {name for name, check in made.items() if check.is_safety} == {"wait", "look", "once", "few", "no_secrets", "refunded"}
    assert {name for name, check in made.items() if check.is_schema} == {"is_json", "is_reply", "has_fields"}


def test_the_success_of_runs_with_errors_is_kept_under_the_verdicts_contract() -> None:
    found = recovery_runs(a_run(a_failure("a")), Verdict(Outcome.PASS), "v1")
    definition = {"rule": "verdict of runs with a tool error", "version": 1, "verdict": "v1"}
    assert found is not None
    assert found.contract == Contract(kind="code", dimension="recovery_runs", check_definition=definition).hash
