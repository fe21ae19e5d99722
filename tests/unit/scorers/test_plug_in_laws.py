"""What the laws of checks of one's own try: every kind of run that a check may be given, and the sentence for each law that is broken."""

from collections.abc import Callable
from itertools import chain, count, repeat
from typing import Any

import msgspec
import pytest
from run_builders import REFUND, a_model_step

from pipeline.model.run import Cohort, Ended, Place, Run
from pipeline.model.settings import Settings
from pipeline.model.step import ToolCall, Usage
from pipeline.model.time import SECOND
from pipeline.scorers.check import Finding, measured, ruled
from pipeline.scorers.laws import ANYTHING, a_run, broken_laws
from pipeline.scorers.plug_in import Needs, Observed, PlugIn, PlugInKind

CALL = ToolCall("refund", "c1", {"id": 1}, raw_arguments='{"id": 1}', result='{"done": true}')
RUN = a_run(CALL, steps=(a_model_step(),), tools=(REFUND,), usage=Usage(input=3, output=4))
UNANSWERED = ("without an answer", "after an error")


def calls(**changes: Any) -> dict[str, Any]:
    """What changes in the run where its call is another."""
    return {"tool_calls": (msgspec.structs.replace(CALL, **changes),)}


WORN: list[tuple[str, dict[str, Any]]] = [
    ("the run as it is", {}),
    ("without an answer", {"answer": None, "ended": Ended.SILENCE}),
    ("without steps", {"steps": ()}),
    ("without calls", {"tool_calls": ()}),
    ("without tools", {"tools": ()}),
    ("without usage and times", {"usage": Usage(), "start_ns": 0, "end_ns": 0}),
    ("after an error", {"answer": None, "ended": Ended.ERROR, "error": "boom"}),
    ("with arguments that were cut", calls(arguments=None, raw_arguments='{"a')),
    ("with results that were not captured", calls(result=None)),
    ("with results that are no JSON", calls(result="{'a': ")),
    ("with calls that failed", calls(result=None, error="timeout")),
    ("with calls that no span executed", calls(result=None, error="not executed")),
]
for _value in ANYTHING:
    WORN.append((f"with {_value!r} as arguments", calls(arguments=_value, raw_arguments="")))
    WORN.append((f"with {_value!r} as every argument", calls(arguments={"id": _value})))


def plug_in(measure: Callable[[Observed, Any], Any], **fields: Any) -> PlugIn:
    return PlugIn(name="ours", about="Ours.", measure=measure, **fields)


def test_a_run_to_try_a_check_on_is_one_that_answered_after_these_calls() -> None:
    start = 1_790_000_040 * SECOND
    assert a_run(CALL, error="x") == Run(
        project="default",
        trace_id="abababababababababababababababab",
        run_id="cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd",
        head_span_id="efefefefefefefef",
        place=Place(Cohort(agent="support"), start),
        start_ns=start,
        end_ns=start + SECOND,
        first_received_ns=start + SECOND,
        steps=(),
        answer="Done.",
        ended=Ended.ANSWER,
        tool_calls=(CALL,),
        error="x",
    )


def test_a_check_that_always_breaks_is_told_on_what_once_each() -> None:
    def breaks(*_: object) -> Finding:
        raise RuntimeError("no")

    told = [f"{where}: RuntimeError: no" for where, _ in WORN]
    assert broken_laws(plug_in(breaks), RUN, RUN) == [*told, "it applies to none of these runs"]


@pytest.mark.parametrize("requires", [(), (Needs.ANSWER,)])
def test_a_check_is_tried_on_the_run_and_on_all_that_can_become_of_it(requires: tuple[Needs, ...]) -> None:
    seen: list[Run] = []

    def watches(observed: Observed, _: Any) -> Finding:
        seen.append(observed.run)
        return ruled(True)

    assert broken_laws(plug_in(watches, requires=requires), RUN) == []
    if requires:
        expected = [msgspec.structs.replace(RUN, **changes) for where, changes in WORN if where not in UNANSWERED]
    else:
        expected = [msgspec.structs.replace(RUN, **(changes | {"answer": None})) for _, changes in WORN]
    whole = expected[0]
    assert seen == [*[whole] * (3 if requires else 5), *expected, whole]


class Most(Settings):
    """Of a check that can be set."""

    most: int = 3


def test_a_check_is_tried_with_the_settings_that_it_is_given() -> None:
    seen: set[int] = set()

    def watches(_: Observed, settings: Most) -> Finding:
        seen.add(settings.most)
        return measured(float(settings.most), holds=True)

    check = plug_in(watches, settings=Most, kind=PlugInKind.MEASUREMENT)
    assert broken_laws(check, RUN, settings={"most": 7}) == []
    assert seen == {7}
    assert broken_laws(check, RUN) == []
    assert seen == {7, 3}

    def changes(given: Observed, settings: Most) -> Finding:
        (given.run.tools[0].schema or {})["most"] = settings.most
        return ruled(True)

    assert "it changes what it was given" in broken_laws(plug_in(changes, settings=Most), RUN)


@pytest.mark.parametrize(
    ("measure", "sentence"),
    [
        (lambda seen, _: (seen.run.steps and seen.run.tools[0].schema.clear()) or ruled(True), "it changes what it was given"),
        (lambda *_: None, "it applies to none of these runs"),
    ],
)
def test_each_law_has_its_sentence(measure: Callable[[Observed, Any], Any], sentence: str) -> None:
    assert sentence in broken_laws(plug_in(measure), RUN)


def test_a_check_that_is_of_two_minds_is_told_so() -> None:
    turns = count()
    broken = broken_laws(plug_in(lambda *_: ruled(next(turns) % 2 == 0)), RUN)
    assert broken[0] == "asked twice, it finds two different things"
    assert broken_laws(plug_in(lambda *_: ruled(True))) == [
        "it was tried on no run; give it one that it passes and one that it fails"
    ]


def test_a_check_that_finds_two_things_where_only_words_differ_is_told_so() -> None:
    """The fifth time it is asked, the run differs from the one before in the answer alone."""
    turns = chain([True, True, True, True, False], repeat(True))
    assert broken_laws(plug_in(lambda *_: ruled(next(turns))), RUN) == [
        "it believes what the agent says of its own work; read calls, results and records, or require the answer"
    ]
