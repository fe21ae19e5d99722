"""Laws that every dialect keeps, tried on a recording of one's own: what a test of a dialect calls first.

``assert broken_laws(DIALECT, Path("trace.jsonl")) == []`` in a test says by itself which law was broken, on which span, by which attribute.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from collectors.dialects import DIALECTS
from collectors.dialects.attributes import decoded, indexed
from collectors.dialects.dialect import Dialect
from collectors.dialects.reader import Reader
from collectors.replay.arrived import arrived
from pipeline.model.span import Attributes, Span
from pipeline.model.step import Step, StepKind
from pipeline.stages.assemble import TraceState

ANYTHING: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 2**63 - 1, 1.5, "NaN"),
    *("", " ", "None", "N/A", "{}", "[]", "null", "__REDACTED__", "<not specified>", "\u0000", "\u202e"),
    *("[", '{"a": ', "{'a': 1", '"{\\"a\\": 1}"', "[" * 2000, "{'a': " + "(" * 2000, "999999999999999999999"),
    *([], {}, [[]], [None], [{}], {"": {}}, {"role": 1, "content": {"a": []}}, [{"type": [], "parts": [1, {"text": None}]}]),
    *({"args": 1, "kwargs": []}, {"output": {"content": 1}}, {"messages": [[[]]]}, {"bytesValue": "AA=="}),
)
"""Values that senders have put into attributes, or could."""
_Law = Callable[[Reader, Dialect, list[Span]], Iterator[str]]


def broken_laws(dialect: Dialect, *files: Path, texts: Collection[str] = ()) -> list[str]:
    """Return the laws that a dialect breaks on recorded traces, a sentence each; nothing if it keeps them all.

    ``texts`` names attributes that hold what somebody said, and are texts also where they look like JSON; ``N`` stands for any index.

    Raises:
        ConfigurationError: a file is missing or broken, or none of them holds a span.
    """
    spans, _ = arrived(files)
    return list(dict.fromkeys(broken_on(dialect, spans, texts)))


def broken_on(dialect: Dialect, spans: Iterable[Span], texts: Collection[str] = ()) -> Iterator[str]:
    """Yield the laws that a dialect breaks on these spans."""
    everything = list(spans)
    reader = Reader((dialect, *(one for one in DIALECTS if one.name != dialect.name)))
    own = [span for span in everything if (found := reader.detect(span)) is not None and found.dialect is dialect]
    if not own:
        yield f"none of the {len(everything)} spans is in {dialect.name}: no scope and no attribute is one of its marks"
        return
    for law in _LAWS:
        yield from law(reader, dialect, own)
    yield from _json_or_nested(reader, own, texts)
    yield from _order_of_spans(reader, everything)


def _pure(reader: Reader, _: Dialect, spans: list[Span]) -> Iterator[str]:
    for span in spans:
        before = msgspec.msgpack.encode(span)
        if reader.read(span) != reader.read(span):
            yield f"{span.name}: read twice, it is two different steps"
        if msgspec.msgpack.encode(span) != before:
            yield f"{span.name}: reading changed the span"


def _says_who(reader: Reader, dialect: Dialect, spans: list[Span]) -> Iterator[str]:
    named = [reader.read(span) for span in spans]
    if all(step.dialect != dialect.name for step in named):
        yield f"no step says that it was read by {dialect.name}"
    if all(step.kind is StepKind.OTHER for step in named):
        yield "every span is OTHER: nothing was understood"


def _sound(reader: Reader, _: Dialect, spans: list[Span]) -> Iterator[str]:
    for span in spans:
        yield from _faults(reader, span, span.name)


def _order_of_attributes(reader: Reader, _: Dialect, spans: list[Span]) -> Iterator[str]:
    for span in spans:
        step = reader.read(span)
        for ordered in (reversed(list(span.attributes.items())), sorted(span.attributes.items())):
            if reader.read(_with(span, dict(ordered))) != step:
                yield f"{span.name}: it depends on the order of its attributes"


def _json_or_nested(reader: Reader, spans: list[Span], texts: Collection[str]) -> Iterator[str]:
    for span in spans:
        for name, value in span.attributes.items():
            nested = decoded(value) if isinstance(value, str) and value[:1] in ("{", "[") else value
            if not isinstance(nested, dict | list) or indexed(name) in texts:
                continue
            text = msgspec.json.encode(nested).decode()
            if reader.read(_with(span, span.attributes | {name: text})) != reader.read(
                _with(span, span.attributes | {name: nested})
            ):
                yield f"{span.name}: {name} as JSON in a text is not the same as the value itself"


def _any_value(reader: Reader, _: Dialect, spans: list[Span]) -> Iterator[str]:
    tried: set[tuple[StepKind, str]] = set()
    for span in spans:
        kind = reader.read(span).kind
        for name in [one for one in span.attributes if (kind, one) not in tried]:
            tried.add((kind, name))
            for value in ANYTHING:
                yield from _faults(
                    reader, _with(span, span.attributes | {name: value}), f"{span.name} with {name} = {value!r:.60}"
                )
            rest = {key: one for key, one in span.attributes.items() if key != name}
            yield from _faults(reader, _with(span, rest), f"{span.name} without {name}")


def _faults(reader: Reader, span: Span, where: str) -> Iterator[str]:
    """Yield what is wrong with a span's step by itself."""
    try:
        step = reader.read(span)
    except Exception as error:  # noqa: BLE001 - the very thing that must not happen, whatever it is
        yield f"{where}: reading raises {type(error).__name__}: {error}"
        return
    if (step.span_id, step.start_ns, step.end_ns, step.received_ns) != (
        span.span_id,
        span.start_ns,
        span.end_ns,
        span.received_ns,
    ):
        yield f"{where}: the step is another span's"
    if step.parent_id not in ("", span.parent_id):
        yield f"{where}: the step hangs below another span"
    if step.kind is StepKind.TOOL and (step.tool is None or not step.tool.name):
        yield f"{where}: a tool call without a name"
    try:
        msgspec.json.decode(msgspec.json.encode(step), type=Step)
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        yield f"{where}: the step cannot be stored ({error})"


def _with(span: Span, attributes: Attributes) -> Span:
    return msgspec.structs.replace(span, attributes=attributes)


_LAWS: Final[tuple[_Law, ...]] = (_pure, _says_who, _sound, _order_of_attributes, _any_value)


def _order_of_spans(reader: Reader, spans: list[Span]) -> Iterator[str]:
    """Traces make the same groups whatever order their spans come in, once or twice."""
    orders = (spans, spans[::-1], [*spans, *spans])
    groups = [{trace: state.groups(reader.read) for trace, state in _states(one).items()} for one in orders]
    if any(one != groups[0] for one in groups):
        yield "the runs depend on the order in which spans come, or on how often"
    if not any(groups[0].values()):
        yield "there is no run in the recording: no agent, no model call and no tool call"


def _states(spans: Iterable[Span]) -> dict[str, TraceState]:
    states: dict[str, TraceState] = {}
    for span in spans:
        states.setdefault(span.trace_id, TraceState(span.project, span.trace_id)).add_spans([span])
    return states
