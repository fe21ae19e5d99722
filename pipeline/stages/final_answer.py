"""Final answer: what the run as a whole said in the end."""

from typing import Final

from pipeline.model.step import Message, Step, StepKind
from pipeline.stages.lineage import GUARDRAIL, Lineage

OPAQUE: Final = "opaque"
"""Flag of a step whose output is a structure and not a message."""
_VOICES: Final = (StepKind.AGENT, StepKind.ORCHESTRATION, StepKind.MODEL)


def final_answer(lineage: Lineage) -> str | None:
    """Return the last text that the run's own agents left standing; None where there is none.

    A step's own output counts before what happens below it: an agent may post-process its model's text, and models are called for other
    things than answers. Below, the voice that ended last counts, so that after a hand-over the last agent answers, and an agent that was
    called like a tool does not. A text followed by tool calls is no answer.
    """
    text = _said(lineage.head, lineage)
    if text is None and OPAQUE in lineage.head.flags:
        return _last_text(lineage.head.output)
    return text or None


def _said(step: Step, lineage: Lineage) -> str | None:
    """Return the step's last word; an empty text is the word that there is no answer."""
    while True:
        voices = _voices(step, lineage)
        if step.kind is StepKind.MODEL:  # below a call hang only calls beside it that have lost their parent
            voices = [one for one in voices if not lineage.repeats(one) and _ended(one) > _ended(step)]
        output = _output(step, lineage)
        if output and OPAQUE not in step.flags and not _pending(output) and not (voices and step.kind is StepKind.MODEL):
            return _last_text(output)
        if not voices:
            return None
        step = max(voices, key=_ended)


def _ended(step: Step) -> tuple[int, int]:
    return step.end_ns or step.start_ns, step.start_ns


def _output(step: Step, lineage: Lineage) -> tuple[Message, ...]:
    if step.kind is StepKind.MODEL:
        return next((call.output for call in lineage.model_calls if call.step is step), step.output)
    return step.output


def _voices(step: Step, lineage: Lineage) -> list[Step]:
    """Return the nearest steps below that can speak for this one."""
    found: list[Step] = []
    waiting = list(lineage.children(step))
    while waiting:
        child = waiting.pop()
        if child.span_id not in lineage.own or child.kind is StepKind.TOOL or GUARDRAIL in child.flags:
            continue
        if child.kind in _VOICES or (child.kind is StepKind.OTHER and child.output):
            found.append(child)
        else:
            waiting.extend(lineage.children(child))
    return found


def _pending(output: tuple[Message, ...]) -> bool:
    last = [message for message in output if message.role == "assistant"][-1:]
    return not last or any(call.result is None for call in last[0].tool_calls)


def _last_text(output: tuple[Message, ...]) -> str | None:
    return next((message.text for message in reversed(output) if message.role == "assistant"), None)
