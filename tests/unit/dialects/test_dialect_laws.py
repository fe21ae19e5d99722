"""The laws that every dialect keeps: all that are built in keep them on every recording, and a dialect that breaks one is told which."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
from builders import a_span
from recordings import recordings, spans_of

from collectors.dialects import BUILT_IN, DIALECTS
from collectors.dialects.attributes import first_text
from collectors.dialects.dialect import About, Dialect, Marks
from collectors.dialects.laws import broken_laws, broken_on
from collectors.dialects.steps import step_of
from pipeline.errors import ConfigurationError
from pipeline.model.span import Span
from pipeline.model.step import Message, Step, StepKind, ToolCall

TEXTS = {
    "openinference": ("llm.input_messages.N.message.content", "llm.output_messages.N.message.content", "input.value", "metadata"),
}
"""Attributes that are always texts, whatever they look like: the conventions of that dialect flatten every structure."""


@cache
def recorded() -> dict[str, list[Span]]:
    """By dialect, one recorded span of each kind and set of attributes, and what hangs together with it."""
    shapes: dict[str, dict[Any, Span]] = defaultdict(dict)
    for path in recordings():
        for span in spans_of(path):
            found = BUILT_IN.detect(span)
            if found is not None:
                shapes[found.dialect.name].setdefault((span.name, BUILT_IN.read(span).kind, *sorted(span.attributes)), span)
    return {name: list(some.values()) for name, some in shapes.items()}


RECORDED = (
    *("adk", "agent_framework", "any_agent", "autogen", "genai", "koog", "langfuse", "openinference", "openllmetry"),
    *("pydantic_ai", "strands", "vercel"),
)
"""Dialects that have recordings."""


@pytest.mark.parametrize("name", RECORDED)
def test_every_dialect_keeps_the_laws_on_whatever_was_recorded_of_it(name: str) -> None:
    (dialect,) = (one for one in DIALECTS if one.name == name)
    broken = dict.fromkeys(broken_on(dialect, recorded()[name], TEXTS.get(name, ())))
    # One span of each kind is no run where the others are another dialect's.
    assert [law for law in broken if not law.startswith("there is no run")] == []


# Dialects that break a law each


def a_dialect(read: Callable[[Span], Step], name: str = "tried") -> Dialect:
    return Dialect(name, About("Tried", "nothing"), Marks(scopes=("tried",)), read)


def good(span: Span) -> Step:
    name = first_text(span.attributes, "name")
    said = span.attributes.get("said")
    return step_of(
        *(span, "tried", StepKind.AGENT), agent=name, output=(Message("assistant", said),) if isinstance(said, str) else ()
    )


NUMBERS = count()


def impure(span: Span) -> Step:
    return msgspec.structs.replace(good(span), agent=str(next(NUMBERS)))


def changing(span: Span) -> Step:
    span.attributes["seen"] = True
    return good(span)


def raising(span: Span) -> Step:
    return step_of(span, "tried", StepKind.AGENT, agent=span.attributes["name"].upper())


def raising_later(span: Span) -> Step:
    return step_of(span, "tried", StepKind.AGENT, agent=span.attributes.get("name", "").upper())


def ordered(span: Span) -> Step:
    return step_of(span, "tried", StepKind.AGENT, agent=next(iter(span.attributes), ""))


def nameless(span: Span) -> Step:
    return step_of(span, "tried", StepKind.TOOL, tool=ToolCall(""))


def unstorable(span: Span) -> Step:
    return step_of(span, "tried", StepKind.AGENT, agent=span.attributes.get("name"))


def textual(span: Span) -> Step:
    return step_of(span, "tried", StepKind.AGENT, agent=type(span.attributes.get("said")).__name__)


def moving(span: Span) -> Step:
    return msgspec.structs.replace(good(span), parent_id="cc" * 8)


def another(span: Span) -> Step:
    return msgspec.structs.replace(good(span), span_id="cc" * 8)


def ignorant(span: Span) -> Step:
    return step_of(span, "tried", StepKind.OTHER)


def anonymous(span: Span) -> Step:
    return step_of(span, "", StepKind.AGENT)


SPANS = [
    a_span(name="go", scope_name="tried", attributes={"name": "support", "said": '{"a":1}'}),
    a_span("00000000000000b2", "00000000000000a1", name="on", scope_name="tried", attributes={"name": "refunds"}),
]


def fresh() -> Iterator[Span]:
    for span in SPANS:
        yield msgspec.structs.replace(span, attributes=dict(span.attributes))


@pytest.mark.parametrize(
    ("read", "sentence"),
    [
        (impure, "go: read twice, it is two different steps"),
        (changing, "go: reading changed the span"),
        (raising, "go without name: reading raises KeyError: 'name'"),
        (raising_later, "go with name = None: reading raises AttributeError: 'NoneType' object has no attribute 'upper'"),
        (ordered, "go: it depends on the order of its attributes"),
        (nameless, "go: a tool call without a name"),
        (unstorable, "go with name = True: the step cannot be stored (Expected `str`, got `bool` - at `$.agent`)"),
        (textual, "go: said as JSON in a text is not the same as the value itself"),
        (moving, "go: the step hangs below another span"),
        (another, "go: the step is another span's"),
        (ignorant, "every span is OTHER: nothing was understood"),
        (ignorant, "there is no run in the recording: no agent, no model call and no tool call"),
        (anonymous, "no step says that it was read by tried"),
    ],
)
def test_a_dialect_that_breaks_a_law_is_told_which_and_where(read: Callable[[Span], Step], sentence: str) -> None:
    assert sentence in broken_on(a_dialect(read), fresh())


def test_runs_that_depend_on_the_order_of_spans_are_told() -> None:
    reads = count()

    def forgetful(span: Span) -> Step:
        return step_of(span, "tried", StepKind.CHAIN if next(reads) % 3 else StepKind.AGENT, agent="support")

    assert "the runs depend on the order in which spans come, or on how often" in broken_on(a_dialect(forgetful), fresh())


def test_a_text_is_a_text_where_the_author_says_so() -> None:
    assert list(broken_on(a_dialect(good), fresh())) == ["go: said as JSON in a text is not the same as the value itself"]
    assert list(broken_on(a_dialect(good), fresh(), texts=["said"])) == []


def test_a_recording_that_is_not_the_dialects_is_told() -> None:
    path = recordings("live/vercel-ai-sdk-6")[0]
    assert broken_laws(a_dialect(good), path) == [
        f"none of the {len(spans_of(path))} spans is in tried: no scope and no attribute is one of its marks"
    ]


def test_a_recording_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"absent\.json"):
        broken_laws(a_dialect(good), tmp_path / "absent.json")
