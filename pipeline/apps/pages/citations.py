"""Citations: where in a run the words stand that a result gives as its evidence."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from pipeline.apps.pages.step_text import answers_of, calls_of, given_to, returned_by
from pipeline.judges.quote import fold
from pipeline.model.evidence import Evidence
from pipeline.model.step import StepKind
from pipeline.scorers.calls import describe
from pipeline.scorers.reading import quoted
from pipeline.stages.outline import Entry

_CUT: Final = "…"
_LEAST: Final = 2
"""Letters and digits below which words stand everywhere and name no place."""


class Place(NamedTuple):
    """Where evidence stands: in a step, by its span id, or in a ``section``: the request, the answer, or what a record source answered."""

    span_id: str = ""
    section: str = ""


class Cited:
    """The texts of a run, in the order in which evidence is looked for in them: what was observed before what the agent says itself."""

    def __init__(self, entries: Sequence[Entry], request: str, answer: str | None, reads: Sequence[Evidence] = ()) -> None:
        self._entries = entries
        self._sections = (("answer", answer or ""), ("request", request))
        self._calls = _calls(entries)
        self._reads = [(Place(section=f"record-{one.id}"), quoted(one)) for one in reads]
        self._folded: dict[int, str] = {}

    def place(self, evidence: str) -> Place | None:
        """Return where evidence stands; None where it is not a text of the run, or of no use as a place."""
        wanted = evidence.strip()
        if sum(character.isalnum() for character in wanted) < _LEAST:
            return None
        for place, quote in self._reads:
            if quote in wanted:  # a check that looked at several quotes all of them; the first is where to begin
                return place
        if wanted in self._calls:
            return Place(span_id=self._calls[wanted])
        wanted = wanted.removesuffix(_CUT)
        for exactly in (True, False):
            looked_for = wanted if exactly else fold(wanted).strip(" \"'")
            for place, text in self._texts():
                if looked_for and looked_for in (text if exactly else self._fold(text)):
                    return place
        return None

    def _texts(self) -> Iterator[tuple[Place, str]]:
        for texts in (returned_by, answers_of, calls_of):
            entries = self._entries if texts is not answers_of else _models_last_first(self._entries)
            yield from ((Place(span_id=entry.step.span_id), text) for entry in entries for text in texts(entry.step))
        yield from ((Place(section=name), text) for name, text in self._sections if text)
        first = next((entry.step for entry in self._entries if entry.step.kind is StepKind.MODEL), None)
        if first is not None:  # later calls are given the same history again
            yield from ((Place(span_id=first.span_id), text) for text in given_to(first))

    def _fold(self, text: str) -> str:
        key = id(text)  # texts of steps live as long as the steps do
        if key not in self._folded:
            self._folded[key] = fold(text)
        return self._folded[key]


def _calls(entries: Iterable[Entry]) -> dict[str, str]:
    """Return the span ids of tool calls by the line that checks give as evidence of them; of equal ones the first."""
    found: dict[str, str] = {}
    for entry in entries:
        if entry.step.tool is not None:
            found.setdefault(describe(entry.step.tool), entry.step.span_id)
    return found


def _models_last_first(entries: Sequence[Entry]) -> list[Entry]:
    """An answer is what was said last; the model that said it comes before the agents that pass it on."""
    last_first = entries[::-1]
    return [entry for models in (True, False) for entry in last_first if (entry.step.kind is StepKind.MODEL) is models]
