"""Record checks: what a record source says of the effect of a call, held against the call (spec section 3).

A read that failed is unknown, and nothing that the agent says takes its place; a record that is not there is a fact.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from pipeline.model.evidence import Question
from pipeline.model.result import Outcome
from pipeline.model.run import Run
from pipeline.model.step import ToolCall
from pipeline.scorers.calls import calls_unseen
from pipeline.scorers.check import Check, Finding, Missing, check_of, ruled, unknown
from pipeline.scorers.reading import MOST, NO_READS, Reading, Reads, Source, key_in_words, quoted, unread
from pipeline.scorers.record_rules import problems
from pipeline.scorers.record_settings import RecordSettings


def record_check(settings: RecordSettings, sources: Mapping[str, Source]) -> Check:
    """Return a declared check of what a source says, named like it.

    Raises:
        ConfigurationError: there is no such source, or its parameters are others.
    """
    reading = Reading(settings, sources)
    definition = settings.model_dump(mode="json", by_alias=True, exclude={"name", "gate", "safety"}, exclude_defaults=True)
    terms = {"rule": "record", "version": 1, **definition, **reading.terms}

    def judged(run: Run, reads: Reads) -> Finding | None:
        return _judged(settings, reading, run, reads)

    def measure(run: Run) -> Finding | None:
        return judged(run, NO_READS)

    check = check_of(settings.name, terms, measure, gates=settings.gate)
    return msgspec.structs.replace(check, questions=reading.questions, with_reads=judged, is_safety=settings.safety)


def _judged(settings: RecordSettings, reading: Reading, run: Run, reads: Reads) -> Finding | None:
    """Read every question's answer. One known violation is enough to fail, whatever else is not known."""
    if calls_unseen(run):
        return unknown(Missing.CALLS_NOT_CAPTURED, "the models' content was not captured")
    asked = reading.asked(run)
    if not asked:
        return None
    if sum(one.question is not None for one in asked) > MOST:
        return unknown(Missing.TOO_MANY_READS, f"more than {MOST} records would have to be read")
    findings: list[Finding] = []
    for one in asked:
        if one.question is None:
            findings.append(unknown(one.doubt or Missing.ARGUMENTS_NOT_COMPARABLE, f"call of {settings.each}"))
        else:
            findings += _answered(settings, one.calls, one.question, reads)
    failed = next((one for one in findings if one.outcome is Outcome.FAIL), None)
    undecided = next((one for one in findings if not one.outcome.decided), None)
    return failed or undecided or ruled(holds=True, evidence="\n".join(dict.fromkeys(one.evidence for one in findings)))


def _answered(settings: RecordSettings, calls: Sequence[ToolCall], question: Question, reads: Reads) -> Iterator[Finding]:
    evidence = reads.get(question.id)
    failure = unread(question, evidence)
    if failure is not None or evidence is None:
        yield failure or unknown(Missing.RECORD_NOT_READ, question.source)
        return
    quote = quoted(evidence)
    for problem in problems(settings, calls, evidence):
        if isinstance(problem, Missing):
            yield msgspec.structs.replace(unknown(problem, f"{question.source} {key_in_words(question)}"), evidence=quote)
        else:
            yield ruled(holds=False, reason=problem, evidence=quote)
    yield ruled(holds=True, evidence=quote)
