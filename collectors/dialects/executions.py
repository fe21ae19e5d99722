"""What a tool span says of the execution: the arguments it was given and the result it gave, without the wrappings of frameworks."""

import ast
from typing import Any, Final, NamedTuple

from collectors.dialects.attributes import UNREADABLE, as_text, captured, decoded, is_shallow, withheld
from collectors.dialects.messages import messages_of
from collectors.dialects.parts import result_text
from collectors.dialects.steps import NO_CONTENT, TRUNCATED, error_of, raised, step_of
from pipeline.model.span import Span
from pipeline.model.step import Step, StepKind, ToolCall


class Given(NamedTuple):
    """Arguments of an execution; ``arguments`` is None where they were not captured or do not parse, then ``raw`` has the text."""

    arguments: Any = None
    raw: str = ""
    call_id: str = ""
    truncated: bool = False


class Returned(NamedTuple):
    """Result of an execution, None where it was not captured.

    ``failed`` is the result's own word, ``goto`` whom control went to, ``name`` the tool's where the result says it.
    """

    text: str | None = None
    call_id: str = ""
    failed: bool = False
    goto: str = ""
    name: str = ""
    truncated: bool = False


_OBJECTS: Final = ('{"', '[{"')
"""How JSON of a structure begins. Where it does not end like one, it was cut."""
_WRAPPED: Final = frozenset({"args", "kwargs", "sanitize_inputs_outputs"})
_LONGEST_LITERAL: Final = 20_000
_DEEPEST_LITERAL: Final = 200
_TELLTALES: Final = ("tool_call_id", "isError", "is_error", '"goto"', '"status"')


def given(value: Any, parameters: Any = None, *, is_json: bool = False) -> Given:
    """Read a tool span's input.

    A schema in the place of arguments is none; ``{}`` is none either, unless ``parameters`` says that the tool takes nothing (dialects
    reference, trap 5). A bare value, which LangChain writes for a tool with a single argument, is kept as ``raw``; so is a text that does not
    parse, which was cut if it ``is_json`` or begins like an object.
    """
    if not captured(value):
        return Given()
    if isinstance(value, str):
        text = value.strip()
        value = _parsed(text)
        if isinstance(value, str):
            return Given(raw=value)
        if value is UNREADABLE:
            return Given(raw=text, truncated=is_json or text.startswith(_OBJECTS))
    return _unwrapped(value, parameters) if is_shallow(value) else Given(raw=as_text(value))


def _parsed(text: str) -> Any:
    """Return the structure of a text that looks like one, in JSON or as Python writes a dictionary; other text as it is."""
    if text.startswith("{'"):
        return _python_literal(text)
    return decoded(text) if text[:1] in ("{", "[", '"') else text


def _python_literal(text: str) -> Any:
    """Python's own reader of literals can be made to overflow the stack, so what is long or deep is not given to it."""
    if len(text) > _LONGEST_LITERAL or sum(map(text.count, "([{-~")) > _DEEPEST_LITERAL:
        return UNREADABLE
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return UNREADABLE


def _unwrapped(value: Any, parameters: Any) -> Given:
    if not isinstance(value, dict):
        return Given(arguments=value)
    if not value:
        return Given(arguments={}) if _takes_nothing(parameters) else Given(raw="{}")
    return Given() if _is_schema(value) else _unwrapped_object(value, parameters)


def _unwrapped_object(value: dict[str, Any], parameters: Any) -> Given:
    if "input_str" in value and "inputs" in value:  # LangChain's callback record
        record = value["kwargs"] if isinstance(value.get("kwargs"), dict) else {}
        inputs = value["inputs"]
        inner = Given(arguments=inputs) if isinstance(inputs, dict) and inputs else given(value["input_str"], parameters)
        return inner._replace(call_id=as_text(record.get("tool_call_id")))
    if "kwargs" in value and value.keys() <= _WRAPPED:  # a decorated Python function
        return Given(arguments=_named(value.get("args"), value["kwargs"], parameters))
    if value.get("type") == "tool_call" and isinstance(value.get("args"), dict):
        return Given(arguments=value["args"], call_id=as_text(value.get("id")))
    return Given(arguments=value)


def _named(positional: Any, named: Any, parameters: Any) -> Any:
    """Name positional arguments by the tool's parameters; without names and keywords they stay a list."""
    positional = positional if isinstance(positional, list) else []
    named = named if isinstance(named, dict) else {}
    names = list(_properties(parameters) or ()) if positional else []
    if positional and not named and len(names) < len(positional):
        return positional
    return dict(zip(names, positional, strict=False)) | named


def _takes_nothing(parameters: Any) -> bool:
    return _properties(parameters) == {}


def _properties(parameters: Any) -> dict[str, Any] | None:
    """Return the parameters of a schema by name, None where they are unknown."""
    schema = decoded(parameters)
    if not isinstance(schema, dict):
        return None
    properties = schema.get("properties", {} if schema.get("type") == "object" else schema)
    return properties if isinstance(properties, dict) else None


def _is_schema(value: dict[str, Any]) -> bool:
    """Whether this is a JSON Schema, or smolagents' map of a parameter to its type and description."""
    if isinstance(value.get("properties"), dict):
        return value.get("type") == "object" or isinstance(value.get("required"), list)
    return all(isinstance(item, dict) and isinstance(item.get("type"), str) and "description" in item for item in value.values())


def returned(value: Any) -> Returned:
    """Read a tool span's output: a serialised ToolMessage or MCP result down to the text that was told, other text as it is."""
    if withheld(value):
        return Returned()
    if isinstance(value, str):
        if value[:1] == '"':
            inner = decoded(value)
            return Returned(text=value if inner is UNREADABLE else as_text(inner))
        if value.startswith(_OBJECTS) and not value.rstrip().endswith(("}", "]")):
            return Returned(text=value, truncated=True)
        if value[:1] != "{" or not any(word in value for word in _TELLTALES):
            return Returned(text=value)
        parsed = decoded(value)
        return _result(parsed, value) if isinstance(parsed, dict) else Returned(text=value)
    return _result(value, as_text(value)) if isinstance(value, dict) else Returned(text=result_text(value))


def _result(value: dict[str, Any], text: str) -> Returned:
    output = value.get("output")
    if isinstance(output, dict) and value.keys() <= {"output", "kwargs"}:  # a callback record
        value, text = output, as_text(output)
    if "update" in value and "goto" in value:  # LangGraph's Command
        told = [message for message in messages_of(value["update"], "tool") if message.role == "tool"]
        last = told[-1] if told else None
        goto = as_text(value["goto"]) if value["goto"] else ""
        return Returned(last.text if last else text, last.tool_call_id if last else "", goto=goto)
    for fields in (value.get("data"), value.get("kwargs"), value):
        if isinstance(fields, dict) and "content" in fields and "tool_call_id" in fields:
            said = result_text(fields["content"])
            failed, name = fields.get("status") == "error", as_text(fields.get("name"))
            return Returned(said, as_text(fields["tool_call_id"]), failed=failed, name=name)
    failed = value.get("isError") is True or value.get("is_error") is True
    if "raw_output" in value and isinstance(value.get("blocks"), list):  # LlamaIndex's ToolOutput
        return Returned(result_text(value["blocks"]), failed=failed)
    if failed or isinstance(value.get("isError"), bool):
        text = result_text(value.get("content", text))
    return Returned(text, failed=failed or value.get("status") == "error")


def _raised(span: Span, result: str | None) -> str | None:
    """Return the exception that a tool's span tells of although its status does not, where it returned nothing or just that (reliability R116)."""
    told = raised(span) if span.events else None
    return told if told is not None and (result is None or told.partition(": ")[2] in result) else None


def tool_step(span: Span, dialect: str, name: str, call_id: str, got: Given, gave: Returned, *, agent: str) -> Step:
    """Return an executed call as a step, with the error that the span tells, or else the result."""
    error = error_of(span) or (gave.text or "error" if gave.failed else _raised(span, gave.text))
    nothing = got.arguments is None and not got.raw and gave.text is None
    return step_of(
        span,
        dialect,
        StepKind.TOOL,
        agent=agent,
        error=error,
        tool=ToolCall(name, call_id or gave.call_id or got.call_id, got.arguments, got.raw, gave.text, error),
        flags=(TRUNCATED,) if got.truncated or gave.truncated else (NO_CONTENT,) if nothing else (),
    )
