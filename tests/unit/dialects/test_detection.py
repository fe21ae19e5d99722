"""Whose a span is: a scope before attributes, a whole name before the beginning of one, and the first dialect of two that have a mark."""

from importlib import import_module
from typing import Any

import pytest
from builders import a_span
from hypothesis import given
from hypothesis import strategies as st

from collectors.dialects import BUILT_IN, DIALECTS
from collectors.dialects.detection import Detector
from collectors.dialects.dialect import About, Dialect, Marks
from collectors.dialects.ignored import ignored_because
from collectors.dialects.steps import step_of
from pipeline.model.span import Link, Span
from pipeline.model.step import Step, StepKind


def a_dialect(name: str, *attributes: str, scopes: tuple[str, ...] = ()) -> Dialect:
    def read(span: Span) -> Step:
        return step_of(span, name, StepKind.CHAIN)

    return Dialect(name, About(name, "nothing"), Marks(scopes, attributes), read)


SOME = (
    a_dialect("first", "kind", "maker=us", "us.*", scopes=("scope.first", "both")),
    a_dialect("second", "maker=them", "maker", "all.*", scopes=("scope.*", "both")),
    a_dialect("third", "us.more.*", "kind"),
)


@pytest.mark.parametrize(
    ("scope", "attributes", "found"),
    [
        ("scope.first", {}, ("first", "scope.name is scope.first")),
        ("scope.other", {}, ("second", "scope.name begins with scope.")),
        ("both", {}, ("first", "scope.name is both")),
        ("scope.other", {"kind": "x"}, ("second", "scope.name begins with scope.")),
        ("", {"kind": None}, ("first", "it has kind")),
        ("", {"maker": "us"}, ("first", "maker is us")),
        ("", {"maker": "them"}, ("second", "maker is them")),
        ("", {"maker": "others"}, ("second", "it has maker")),
        ("", {"maker": ["us"]}, ("second", "it has maker")),
        ("", {"all.a": 1, "maker": "us"}, ("first", "maker is us")),
        ("", {"all.a": 1}, ("second", "an attribute begins with all.")),
        ("", {"all.a": 1, "us.more.b": 2}, ("first", "an attribute begins with us.")),
        ("", {"us.more.b": 2}, ("first", "an attribute begins with us.")),
        ("unknown", {"http.method": "GET"}, None),
        ("", {}, None),
    ],
)
def test_a_span_is_in_the_dialect_whose_mark_counts_most(
    scope: str, attributes: dict[str, Any], found: tuple[str, str] | None
) -> None:
    detector = Detector(SOME)
    for _ in range(2):  # what was asked before is remembered
        said = detector.detect(a_span(scope_name=scope, attributes=attributes))
        assert (None if said is None else (said.dialect.name, said.rule)) == found


MARKED = ["kind", "maker", "us.a", "us.more.b", "all.c", "other", *(f"wide.{index}" for index in range(80))]


@given(st.lists(st.sampled_from(MARKED), unique=True), st.randoms(use_true_random=False))
def test_neither_the_order_of_attributes_nor_what_was_asked_before_decides(names: list[str], chance: Any) -> None:
    shuffled = chance.sample(names, len(names))
    fresh = Detector(SOME).detect(a_span(attributes=dict.fromkeys(names, "us")))
    assert DETECTOR.detect(a_span(attributes=dict.fromkeys(shuffled, "us"))) == fresh


DETECTOR = Detector(SOME)
"""One for all examples, which remembers all of them."""


def test_no_number_of_scopes_and_sets_of_attributes_fills_the_memory() -> None:
    detector = Detector(SOME)
    for number in range(3000):
        assert detector.detect(a_span(scope_name=f"scope.{number}", attributes={f"a.{number}": 1})) is not None
        assert detector.detect(a_span(attributes={f"a.{number}": 1})) is None
        wide = {f"us.{number}.{index}": 1 for index in range(100)}
        assert detector.detect(a_span(attributes=wide)) is not None
    assert len(detector._scopes) <= 1000
    assert len(detector._plans) <= 1000
    assert all(len(names) < 100 for names in detector._plans)


def test_every_dialect_is_a_module_of_its_name_and_says_what_it_is() -> None:
    assert [import_module(f"collectors.dialects.{dialect.name}").DIALECT for dialect in DIALECTS] == list(DIALECTS)
    assert all(dialect.about.title and dialect.about.default for dialect in DIALECTS)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda one: one.name)
def test_every_mark_of_every_dialect_finds_it_or_one_that_comes_before_it(dialect: Dialect) -> None:
    before = [one.name for one in DIALECTS[: DIALECTS.index(dialect) + 1]]
    spans = [a_span(scope_name=mark.replace("*", "x")) for mark in dialect.marks.scopes]
    for mark in dialect.marks.attributes:
        name, _, value = mark.replace("*", "x").partition("=")
        spans.append(a_span(attributes={name: value}))
    found = [BUILT_IN.detect(span) for span in spans]
    assert all(one is not None and one.dialect.name in before for one in found)
    assert any(one is not None and one.dialect is dialect for one in found)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"scope_name": "crewai.telemetry"}, "product telemetry of CrewAI"),
        ({"scope_name": "pydantic-evals"}, "an evaluation"),
        ({"attributes": {"openinference.span.kind": "EVALUATOR"}}, "an evaluation"),
        ({"attributes": {"mlflow.trace.sourceScorer": "x"}}, "an evaluation"),
        ({"attributes": {"gen_ai.evaluation.name": "x"}}, "the result of an evaluation"),
        (
            {"attributes": {"logfire.span_type": "pending_span"}, "scope_name": "pydantic-ai"},
            "a copy that Logfire sends while the span itself is still open",
        ),
        (
            {"attributes": {"annotations.0.annotation.name": "x"}, "links": (Link("ab" * 16, "a1" * 8),)},
            "feedback on another span",
        ),
        ({"attributes": {"annotations.0.annotation.name": "x"}}, ""),
        ({"attributes": {"openinference.span.kind": ["EVALUATOR"], "logfire.span_type": []}}, ""),
    ],
)
def test_what_is_no_part_of_any_run_is_ignored_and_it_is_said_why(fields: dict[str, Any], why: str) -> None:
    span = a_span(**fields)
    assert ignored_because(span) == why
    assert (BUILT_IN.read(span).kind is StepKind.IGNORED) == bool(why)
