"""The texts of a step: what it was given, what it said, what came back. Spelt as a judge reads them, so that quotes are found."""

import json
from collections.abc import Iterator

from pipeline.model.step import Message, Step, ToolCall


def arguments_of(call: ToolCall) -> str:
    """Return a call's arguments as text; empty where they were not captured."""
    if call.arguments is None:
        return call.raw_arguments
    return json.dumps(call.arguments, ensure_ascii=False, sort_keys=True, separators=(", ", ": "), default=str)


def returned_by(step: Step) -> Iterator[str]:
    """Yield what came back from a tool, and errors."""
    if step.tool is not None:
        yield from (text for text in (step.tool.result, step.tool.error) if text)
    if step.error:
        yield step.error


def answers_of(step: Step) -> Iterator[str]:
    """Yield what a step said."""
    yield from (message.text for message in step.output if message.text)


def calls_of(step: Step) -> Iterator[str]:
    """Yield what a step called with, or asked to be called."""
    for call in (
        *((step.tool,) if step.tool is not None else ()),
        *(call for message in step.output for call in message.tool_calls),
    ):
        yield arguments_of(call)


def given_to(step: Step) -> Iterator[str]:
    """Yield what a step was given."""
    yield from (message.text for message in step.input if message.text)


def conversation(messages: tuple[Message, ...]) -> str:
    """Return messages as one text: who said it, then what, calls of tools among it."""
    return "\n\n".join("\n".join(_message(message)) for message in messages)


def _message(message: Message) -> Iterator[str]:
    yield f"{message.role}{f' {message.name}' if message.name else ''}:"
    if message.text:
        yield message.text
    for call in message.tool_calls:
        yield f"→ {call.name}({arguments_of(call)})"
