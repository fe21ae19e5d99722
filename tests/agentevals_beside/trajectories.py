"""The same trajectories for both: a run and a reference of ours, and messages as ``agentevals`` takes them. All of them are real runs.

Of each run the reference that came with it, and others that are made of its own calls: as they were, the other way round, one less, one more.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import eval_corpora
import msgspec
from recordings import recordings, runs_of, spans_of

from pipeline.model.reference import Reference, ReferenceCall
from pipeline.model.run import Run
from pipeline.scorers.calls import failed, took_place

EVAL_SET = Path(eval_corpora.LABELLED) / "agentevals" / "eval_set_helm.json"
Message = dict[str, Any]


class Pair(NamedTuple):
    """A run and what it should have done."""

    run: Run
    reference: Reference

    @property
    def alike(self) -> bool:
        """Whether both say the same of it: ``agentevals`` knows neither calls that failed nor calls that were only asked for."""
        return all(took_place(call) and not failed(call) for call in self.run.tool_calls)

    def messages(self) -> dict[str, list[Message]]:
        """The pair as messages, each call in one of its own, so that their order is the calls'."""
        wanted = [(call.tool, dict(call.arguments or {})) for call in self.reference.calls]
        made = [(call.name, call.arguments) for call in self.run.tool_calls]
        return {"outputs": list(_messages(made)), "reference_outputs": list(_messages(wanted))}


def _messages(calls: Sequence[tuple[str, Any]]) -> Iterator[Message]:
    yield {"role": "user", "content": "Please do it."}
    for number, (name, arguments) in enumerate(calls):
        call = {"id": f"call-{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        yield {"role": "assistant", "content": "", "tool_calls": [call]}
        yield {"role": "tool", "tool_call_id": f"call-{number}", "content": "done"}
    yield {"role": "assistant", "content": "Done."}


def pairs() -> list[Pair]:
    """Every run whose arguments were all captured, against each reference."""
    found = [(one.run, one.reference) for one in (*eval_corpora.tau_runs(), *eval_corpora.agentdojo_runs())]
    found += [(run, _golden()) for path in recordings("agentevals") for run in runs_of(spans_of(path))]
    return [
        Pair(run, reference)
        for run, given in found
        if run.tool_calls and all(isinstance(call.arguments, dict) for call in run.tool_calls)
        for reference in (given, *_of_itself(run))
    ]


def _of_itself(run: Run) -> Iterator[Reference]:
    own = [ReferenceCall(call.name, call.arguments) for call in run.tool_calls]
    for calls in (own, own[::-1], own[:-1], [*own, own[0]]):
        yield Reference(tuple(calls))


def _golden() -> Reference:
    """What the eval set says that was recorded with the runs."""
    (case,) = json.loads(EVAL_SET.read_text(encoding="utf-8"))["eval_cases"]
    uses: Iterable[Message] = (use for turn in case["conversation"] for use in turn["intermediate_data"]["tool_uses"])
    return Reference(tuple(ReferenceCall(use["name"], use["args"]) for use in uses))


def written(pairs: Iterable[Pair], file: Path) -> None:
    """Write the messages of the pairs for the other side to read."""
    file.write_bytes(msgspec.json.encode([pair.messages() for pair in pairs]))
