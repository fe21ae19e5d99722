"""Call joining: what models asked for and what was executed, into one list of tool calls.

An execution is joined with the request for it by call id, else by name and arguments, else by name and order. Who asked knows the id and
all arguments; who executed knows whether it failed; the next model call knows what the model was told: the result
where it says the same as the execution, or where the execution's own is not there.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from pipeline.model.step import Message, Step, StepKind, ToolCall, ToolDefinition
from pipeline.scorers.calls import NOT_EXECUTED, canonical
from pipeline.stages.lineage import Lineage

_BEGINNING: Final = 100
"""Characters of a result in which an error says that it is one."""
LONGEST_LITERAL: Final = 100_000
"""Characters of a text that is tried as a Python literal."""


class Asked:
    """A call that a model asked for, and whether an execution was found for it."""

    __slots__ = ("arguments", "at_ns", "call", "place", "taken")

    def __init__(self, call: ToolCall, step: Step, place: int) -> None:
        self.call = call
        self.place = place
        self.arguments = canonical(call.arguments)
        self.at_ns = step.end_ns or step.start_ns
        self.taken = False


def joined_calls(lineage: Lineage, tools: Mapping[str, ToolDefinition]) -> tuple[ToolCall, ...]:
    """Return the run's tool calls in the order in which they were executed, or else asked for.

    Of those that began at the same time the one that was asked for first comes first. A call that no span executed has the error
    ``not executed``: nobody saw it run. Only in a bare loop, a run of nothing but model calls, no span was to be expected: there a call that
    a later model call was told the result of did run.
    """
    asked = _asked(lineage)
    told = _Told(lineage, asked)
    found: list[tuple[int, int, ToolCall]] = []
    for step, match in _executions(lineage, asked):
        call = step.tool if step.kind is StepKind.TOOL else _as_call(step)
        if call is not None:
            place = len(asked) if match is None else match.place
            made = lineage.made_in(step if step.kind is StepKind.TOOL else lineage.caller(step), call)
            found.append((step.start_ns, place, _joined(made, match, told, tools)))
    bare = all(step.kind in (StepKind.MODEL, StepKind.OTHER) for step in lineage.steps)
    found += [(one.at_ns, one.place, _unseen(one, told.of(one), bare=bare)) for one in asked if not one.taken]
    return tuple(call for _, _, call in sorted(found, key=lambda item: item[:2]))


def _asked(lineage: Lineage) -> list[Asked]:
    """Return all requests in order. Agents without model spans list theirs themselves."""
    alone = [
        step
        for step in lineage.steps
        if step.kind is StepKind.AGENT and not any(one.kind is StepKind.MODEL for one in lineage.below(step))
    ]
    outputs = [*((one.step, one.output) for one in lineage.model_calls), *((step, step.output) for step in alone)]
    calls = [(call, step) for step, output in outputs for call in _distinct(output)]
    return [Asked(lineage.made_in(step, call), step, place) for place, (call, step) in enumerate(calls)]


def _distinct(output: Iterable[Message]) -> list[ToolCall]:
    """Return the calls of one reply; a streamed one may be recorded in part and again as a whole."""
    found: list[ToolCall] = []
    for call in (call for message in output for call in message.tool_calls):
        same = next((index for index, one in enumerate(found) if call.id and _is_part_of(one, call)), None)
        if same is None:
            found.append(call)
        elif not found[same].arguments:
            found[same] = call
    return found


def _is_part_of(one: ToolCall, other: ToolCall) -> bool:
    if one.id != other.id or one.name != other.name:
        return False
    return not one.arguments or not other.arguments or canonical(one.arguments) == canonical(other.arguments)


def _executions(lineage: Lineage, asked: list[Asked]) -> Iterator[tuple[Step, Asked | None]]:
    """Yield executed calls with their requests. What hands over or only answers takes its request along and is no call."""
    steps = [lineage.whole(step) for step in lineage.steps if step.tool is not None and not lineage.repeats(step)]
    matches = _matched(steps, asked)
    for step in steps:
        if step.kind is StepKind.TOOL:
            yield step, matches.get(step.span_id)
        elif step.span_id not in matches:
            _take_last_before(step, asked)
    for agent in lineage.called_agents:
        match = next((one for one in asked if not one.taken and one.call.name == agent.agent), None)
        if match is not None:
            match.taken = True
            yield agent, match


def _matched(steps: list[Step], asked: list[Asked]) -> dict[str, Asked]:
    by_id: dict[str, list[Asked]] = defaultdict(list)
    by_name: dict[str, list[Asked]] = defaultdict(list)
    for one in asked:
        by_name[one.call.name].append(one)
        if one.call.id:
            by_id[one.call.id].append(one)
    matches: dict[str, Asked] = {}
    for step in steps:
        if step.tool is not None and step.tool.id:
            _take(matches, step, (one for one in by_id[step.tool.id] if not one.taken))
    for step in steps:
        if step.tool is not None and step.span_id not in matches:
            _take(matches, step, iter(_likeliest(step.tool, by_name[step.tool.name])))
    return matches


def _take(matches: dict[str, Asked], step: Step, candidates: Iterator[Asked]) -> None:
    one = next(candidates, None)
    if one is not None:
        one.taken = True
        matches[step.span_id] = one


def _likeliest(call: ToolCall, candidates: list[Asked]) -> list[Asked]:
    """Return the requests of this name that may be the call's, those with the same arguments first, else in order."""
    free = [one for one in candidates if not one.taken and not (call.id and one.call.id)]
    if call.arguments is not None:
        arguments = canonical(call.arguments)
        return [one for one in free if one.arguments == arguments] or free
    return [one for one in free if call.raw_arguments and _has_value(one.call.arguments, call.raw_arguments)] or free


def _has_value(arguments: Any, raw: str) -> bool:
    return isinstance(arguments, dict) and any(str(value) == raw for value in arguments.values())


def _take_last_before(step: Step, asked: list[Asked]) -> None:
    """A hand-over may go by any name: then it answers the last request that nobody took."""
    free = [one for one in asked if not one.taken and one.at_ns <= step.start_ns]
    if free:
        free[-1].taken = True


def _as_call(agent: Step) -> ToolCall:
    """Return the work of an agent that was called like a tool as the call that it is."""
    said = [message.text for message in agent.output if message.role == "assistant" and message.text]
    return ToolCall(agent.agent, result=said[-1] if said else None, error=agent.error)


class _Told:
    """What models were told of their calls, by call id. Some models give all calls of a run one id: then the order tells."""

    def __init__(self, lineage: Lineage, asked: Iterable[Asked]) -> None:
        self._texts: dict[str, list[str]] = {}
        for one in lineage.model_calls:
            texts: dict[str, list[str]] = defaultdict(list)
            for message in one.input:
                if message.role == "tool" and message.tool_call_id:
                    texts[message.tool_call_id].append(message.text)
            for call_id, heard in texts.items():
                known = self._texts.get(call_id, [])
                # A history repeats what was told before; an input that is only what came since does not.
                self._texts[call_id] = heard if heard[: len(known)] == known else [*known, *heard]
        self._same: dict[str, list[Asked]] = defaultdict(list)
        for request in asked:
            self._same[request.call.id].append(request)

    def of(self, asked: Asked) -> str | None:
        """Return the text that answered this request, None where none did."""
        texts = self._texts.get(asked.call.id)
        if not texts:
            return None
        same = self._same[asked.call.id]
        index = same.index(asked) + max(0, len(texts) - len(same))  # a history may hold earlier runs' calls of the same id
        return texts[index] if index < len(texts) else None


def _joined(call: ToolCall, asked: Asked | None, told: _Told, tools: Mapping[str, ToolDefinition]) -> ToolCall:
    if asked is None:
        return _with_arguments(_with_error(call), call.arguments, call.raw_arguments, tools)
    text = told.of(asked)
    known = call.arguments if isinstance(call.arguments, dict) or asked.call.arguments is None else asked.call.arguments
    raw = call.raw_arguments or asked.call.raw_arguments
    whole = msgspec.structs.replace(call, id=call.id or asked.call.id, result=_result(call.result, text))
    return _with_arguments(_with_error(whole), known, raw, tools)


def _result(own: str | None, told: str | None) -> str | None:
    """What the tool returned: as the model was told it where that says the same, else as the tool's own span has it.

    The span is the record; what the model is told may be shortened or rewritten on the way. A span that was cut is none.
    """
    if own is None or told is None:
        return told if own is None else own
    return told if told.startswith(own) or _value_of(told) == _value_of(own) else own


def _value_of(text: str) -> Any:
    """The value behind its spelling: JSON, Python, or words with their white space folded."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        pass
    try:
        return ast.literal_eval(text) if len(text) <= LONGEST_LITERAL else text
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return " ".join(text.split())


def _with_arguments(call: ToolCall, arguments: Any, raw: str, tools: Mapping[str, ToolDefinition]) -> ToolCall:
    """``{}`` on a span may stand for arguments that were not captured; where the tool takes none it stands for itself."""
    if arguments is None and raw == "{}" and call.name in tools:
        schema = tools[call.name].schema
        arguments = {} if schema is not None and not schema.get("properties") else None
    return msgspec.structs.replace(call, arguments=arguments, raw_arguments=raw if arguments is None else "")


def _unseen(asked: Asked, text: str | None, *, bare: bool) -> ToolCall:
    call = asked.call
    if call.result is not None:  # the provider ran it and answered in the model's own message
        return call
    if bare and text is not None:
        return msgspec.structs.replace(call, result=text, error=text if _reads_as_error(text) else None)
    return msgspec.structs.replace(call, result=text, error=NOT_EXECUTED)


def _with_error(call: ToolCall) -> ToolCall:
    """Return the call as failed where only its result says so: a framework that tells the model of the error ends the span without one."""
    failed = call.error is None and call.result is not None and _reads_as_error(call.result)
    return msgspec.structs.replace(call, error=call.result) if failed else call


def _reads_as_error(text: str) -> bool:
    """Whether a result is an error by how its author's text begins, or by the word of the Model Context Protocol (reference, trap 10)."""
    start = text[:_BEGINNING].lstrip().lower()
    if start.startswith(("error:", "exception:", "tool error:")):
        return True
    return start.startswith("{") and '"iserror":true' in text.lower().replace(" ", "")
