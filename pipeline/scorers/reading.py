"""Reading: which questions to a record source follow from a run's calls. Keys come from arguments and results, never from the answer."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from math import isfinite
from typing import Annotated, Any, Final

import msgspec
from pydantic import AfterValidator, Field

from pipeline.errors import ConfigurationError
from pipeline.model import ids
from pipeline.model.contract import Contract
from pipeline.model.evidence import Evidence, Found, Question
from pipeline.model.run import BACKFILL, Run
from pipeline.model.settings import Settings
from pipeline.model.step import ToolCall
from pipeline.model.time import SECOND
from pipeline.scorers.calls import failed, has_arguments, shows_execution, took_place
from pipeline.scorers.check import Finding, Missing, unknown
from pipeline.scorers.json_values import ABSENT, at, parsed
from pipeline.scorers.predicates import Predicate, all_hold, holds

MOST: Final = 20
"""Questions that one check may have about one run."""
LONGEST_KEY: Final = 200
"""Characters of one value of a key."""
_REDACTED: Final = "[redact"
_LONGEST_QUOTE: Final = 400
"""Characters that are quoted of what was read."""

Reads = Mapping[str, Evidence]
"""What was read for a run, by the id of the question."""
NO_READS: Final[Reads] = {}


def _is_path(path: str) -> str:
    first, _, rest = path.partition(".")
    if first not in ("arguments", "result") or (first == "arguments" and not rest):
        raise ValueError(
            f"{path!r} is no place in a call; write arguments.NAME, result.NAME, or result where it is the value itself"
        )
    return path


CallPath = Annotated[str, AfterValidator(_is_path)]
"""A place in a call: ``arguments.order_id``, ``result.refund.id``."""


class Source(msgspec.Struct, frozen=True):
    """A record source as checks know it: what it is, by which parameters it is asked; None where it takes any."""

    name: str
    terms: Mapping[str, Any]
    parameters: frozenset[str] | None = None

    @property
    def contract(self) -> str:
        """Names what is asked and how, 16 hex digits."""
        return Contract(kind="source", dimension=self.name, check_definition=dict(self.terms)).hash


class ReadSettings(Settings):
    """What is read of a source, and for which calls."""

    source: str
    """Name of the record source."""
    each: str
    """The tool: the source is asked about each call of it that succeeded."""
    where: dict[str, Predicate] = Field(default={})
    """Only calls whose arguments meet these conditions."""
    key: dict[str, CallPath] = Field(default={})
    """The source's parameters, each with its place in the call: ``order: arguments.order_id``."""


class Asked(msgspec.Struct, frozen=True):
    """The calls that one question is about; where there is none, ``doubt`` says what is missing to ask it."""

    calls: tuple[ToolCall, ...]
    question: Question | None
    doubt: Missing | None = None


class Reading:
    """The questions of one check. A pure function of the run."""

    def __init__(self, settings: ReadSettings, sources: Mapping[str, Source]) -> None:
        """Take the sources that there are.

        Raises:
            ConfigurationError: the source is none of them, or its parameters are others.
        """
        known = sources.get(settings.source)
        if known is None:
            listed = ", ".join(sorted(sources)) or "none; write it under records"
            raise ConfigurationError(f"no record source is called {settings.source}; the sources are: {listed}")
        if known.parameters is not None and known.parameters != settings.key.keys():
            listed = ", ".join(sorted(known.parameters)) or "none"
            raise ConfigurationError(f"the parameters of {settings.source} are {listed}; write exactly these under key")
        self.source: Final = known
        read = settings.model_dump(mode="json", by_alias=True, include=set(ReadSettings.model_fields), exclude_defaults=True)
        self.terms: Final = {**read, "source": {"name": known.name, **known.terms}}
        """What is read, for a contract."""
        self._contract = known.contract
        self._settings = settings

    def asked(self, run: Run) -> tuple[Asked, ...]:
        """Return the calls by question, in the order of the first call of each, and those about which nothing can be asked."""
        groups: dict[str | Missing, list[ToolCall]] = {}
        for call, doubt in self._concerned(run):
            groups.setdefault(self._key_of(call) if doubt is None else doubt, []).append(call)
        calls = calls_hash(run) if groups else ""
        return tuple(
            Asked(tuple(some), None, key)
            if isinstance(key, Missing)
            else Asked(tuple(some), Question(run.project, run.trace_id, run.run_id, self.source.name, self._contract, key, calls))
            for key, some in groups.items()
        )

    def questions(self, run: Run) -> tuple[Question, ...]:
        """Return what the source is to be asked about a run; nothing where that would be more than :data:`MOST` questions.

        Nothing either about history that is replayed: the source would speak of today, and be asked as often as there is history.
        """
        if run.place.cohort.environment == BACKFILL:
            return ()
        found = tuple(one.question for one in self.asked(run) if one.question is not None)
        return found if len(found) <= MOST else ()

    def _concerned(self, run: Run) -> Iterator[tuple[ToolCall, Missing | None]]:
        """Yield the tool's calls that succeeded, each with what is missing to be sure of that."""
        unseen = Missing.EXECUTION_NOT_CAPTURED if not shows_execution(run.tool_calls) else False
        for call in run.tool_calls:
            if call.name == self._settings.each and not failed(call):
                answer = all_hold((True if took_place(call) else unseen, holds(self._settings.where, call)))
                if answer is not False:
                    yield call, answer if isinstance(answer, Missing) else None

    def _key_of(self, call: ToolCall) -> str | Missing:
        values: dict[str, Any] = {}
        for name, path in self._settings.key.items():
            value = value_at(call, path)
            if isinstance(value, Missing):
                return value
            if not _can_be_a_key(value):
                return _not_comparable(path)
            values[name] = value
        return json.dumps(values, sort_keys=True, default=str)


def calls_hash(run: Run) -> str:
    """Name the calls of a run that took place, 32 hex digits: tools, arguments and success, in order."""
    said = [
        [call.name, call.arguments, call.raw_arguments if call.arguments is None else "", failed(call)]
        for call in run.tool_calls
        if took_place(call)
    ]
    return ids.digest(16, json.dumps(said, sort_keys=True, default=str))


def value_at(call: ToolCall, path: str) -> Any:
    """Return what stands at a place in a call, or what is missing to tell."""
    first, _, rest = path.partition(".")
    if first == "arguments":
        if not has_arguments(call):
            return Missing.ARGUMENTS_NOT_CAPTURED
        value: Any = call.arguments
    elif call.result is None:
        return Missing.RESULTS_NOT_CAPTURED
    else:
        try:
            value = parsed(call.result)
        except ValueError:
            value = call.result
    found = at(value, rest) if rest else value
    return _not_comparable(path) if found is ABSENT else found


def _not_comparable(path: str) -> Missing:
    return Missing.ARGUMENTS_NOT_COMPARABLE if path.startswith("arguments") else Missing.RESULTS_NOT_COMPARABLE


def is_redacted(value: Any) -> bool:
    """Whether something was replaced in a value, so that it is equal to what it was not equal to."""
    return isinstance(value, str) and _REDACTED in value


def _can_be_a_key(value: Any) -> bool:
    """Whether a source can be asked by a value: a short text of visible characters that is whole, or a number."""
    if isinstance(value, str):
        return bool(value.strip()) and len(value) <= LONGEST_KEY and value.isprintable() and not is_redacted(value)
    if isinstance(value, Decimal):
        return value.is_finite() and abs(value.adjusted()) <= LONGEST_KEY
    return isinstance(value, int) or (isinstance(value, float) and isfinite(value))


def unread(question: Question, evidence: Evidence | None) -> Finding | None:
    """Return that a source could not be read, and why; None where it was."""
    if evidence is None:
        return unknown(Missing.RECORD_NOT_READ, f"{question.source} {key_in_words(question)} was not read")
    if evidence.found is Found.FAILED:
        failure = unknown(Missing.RECORD_NOT_READ, f"{question.source} {key_in_words(question)}: {evidence.error}")
        return msgspec.structs.replace(failure, evidence=quoted(evidence))
    return None


def key_in_words(question: Question) -> str:
    """Return a question's parameters as they are shown."""
    return ", ".join(f"{name}={value}" for name, value in parsed(question.key).items())


def quoted(evidence: Evidence) -> str:
    """Return what was read and when, as evidence of a result: the source, its key, the time in UTC, and the beginning of the record."""
    when = datetime.fromtimestamp(evidence.read_ns // SECOND, UTC).isoformat().replace("+00:00", "Z")
    said = {Found.RECORD: evidence.body, Found.ABSENT: "no such record", Found.FAILED: f"not read: {evidence.error}"}
    what = said[evidence.found]
    shown = what if len(what) <= _LONGEST_QUOTE else f"{what[: _LONGEST_QUOTE - 1]}…"
    return f"{evidence.source} {key_in_words(evidence)}, read {when}: {shown}"
