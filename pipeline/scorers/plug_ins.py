"""Checks of others: a package names its own under the entry-point group ``tracegrade.scorers``, a configuration uses them by name.

What a check is made of is in its contract: the package's version, a hash of its source, the settings.
"""

from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint
from math import isfinite
from typing import Any, Final

import msgspec
from pydantic import Field

from pipeline.model.evidence import Evidence
from pipeline.model.result import Outcome
from pipeline.model.run import Run
from pipeline.model.settings import Settings
from pipeline.scorers.check import Check, CheckName, Finding, Missing, check_of, unknown
from pipeline.scorers.installed import Group, loaded, provenance, validated
from pipeline.scorers.plug_in import PlugIn, PlugInKind, concerns, lacking, observed
from pipeline.scorers.reading import NO_READS, Reading, Reads, ReadSettings, Source, unread

SCORERS: Final = Group("tracegrade.scorers", "check", "measure(seen, settings)")
LONGEST: Final = 600
"""Characters that are kept of a reason, and of a piece of evidence."""


class PythonSettings(Settings):
    """A check that an installed package brings."""

    name: CheckName
    """Its own name; results, windows and gates know the check by it."""
    use: str = Field(default="", max_length=200)
    """What the package calls it; the same as ``name`` where nothing is written."""
    settings: dict[str, Any] = Field(default={})
    """What it is set to; the check itself says what can be set."""
    reads: ReadSettings | None = None
    """What is read of a record source for it."""
    gate: bool | None = None
    """Whether a fail is a fail of the run: by default yes for a rule, no for a measurement."""
    safety: bool = False
    """Set to true where it is a matter of safety: it is in the safety of a quality score then."""


def python_check(
    settings: PythonSettings, sources: Mapping[str, Source] | None = None, found: Iterable[EntryPoint] | None = None
) -> Check:
    """Return a declared check that runs a plug-in, named as it is declared.

    Raises:
        ConfigurationError: it is not installed, cannot be loaded, is no plug-in, or does not take these settings; or what it is to
            read cannot be read.
    """
    plug_in, entry = loaded(SCORERS, settings.use or settings.name, PlugIn, found)
    given = validated(plug_in, settings.settings, settings.name)
    reading = Reading(settings.reads, sources or {}) if settings.reads is not None else None
    terms = {
        "rule": "python",
        "version": 1,
        "plug_in": plug_in.name,
        **provenance(entry),
        "kind": plug_in.kind.value,
        "requires": sorted(plug_in.requires),
        "settings": given.model_dump(mode="json", by_alias=True),
    }
    if reading is not None:
        terms["reads"] = reading.terms

    def with_reads(run: Run, reads: Reads) -> Finding | None:
        records = () if reading is None else _records(reading, run, reads)
        return records if isinstance(records, Finding) else found_by(plug_in, run, given, records)

    def measure(run: Run) -> Finding | None:
        return with_reads(run, NO_READS)

    gates = plug_in.kind is PlugInKind.RULE if settings.gate is None else settings.gate
    check = msgspec.structs.replace(check_of(settings.name, terms, measure, gates=gates), is_safety=settings.safety)
    return check if reading is None else msgspec.structs.replace(check, questions=reading.questions, with_reads=with_reads)


def _records(reading: Reading, run: Run, reads: Reads) -> tuple[Evidence, ...] | Finding:
    """Return all that was read for the check, or why it cannot tell: half of the records are no evidence."""
    found: list[Evidence] = []
    for one in reading.asked(run):
        if one.question is None:
            return unknown(one.doubt or Missing.ARGUMENTS_NOT_COMPARABLE, f"call of {one.calls[0].name}")
        evidence = reads.get(one.question.id)
        failure = unread(one.question, evidence)
        if failure is not None or evidence is None:
            return failure or unknown(Missing.RECORD_NOT_READ, one.question.source)
        found.append(evidence)
    return tuple(found)


def found_by(plug_in: PlugIn, run: Run, settings: Settings, records: tuple[Evidence, ...] = ()) -> Finding | None:
    """Return what a plug-in finds in a run, and in what was read for it.

    Raises:
        Exception: whatever it raises, and TypeError or ValueError where what it returns is no sound finding: a grader error.
    """
    if not concerns(plug_in, run):
        return None
    missing = lacking(plug_in, run)
    if missing is not None:
        return missing
    try:
        finding = plug_in.measure(observed(run, plug_in.requires, records), settings)
    except SystemExit as error:  # a check ends neither the process nor anybody else's score
        raise RuntimeError(f"it wanted to end the process ({error})") from error
    return None if finding is None else _sound(finding, plug_in)


def _sound(finding: Any, plug_in: PlugIn) -> Finding:
    if not isinstance(finding, Finding) or not isinstance(finding.outcome, Outcome):
        raise TypeError(f"{plug_in.name} returned a {type(finding).__name__}; return ruled(…), measured(…), unknown(…) or None")
    if finding.outcome.decided:
        _check_value(finding, plug_in)
    elif finding.value is not None or finding.reason.partition(":")[0] not in tuple(Missing):
        raise ValueError(f"{plug_in.name} could not tell, and not why; return unknown(Missing.…, why)")
    reason, evidence = (str(text)[:LONGEST] for text in (finding.reason, finding.evidence))
    return Finding(finding.outcome, finding.value, finding.lower, finding.upper, reason, evidence)


def _check_value(finding: Finding, plug_in: PlugIn) -> None:
    value = finding.value
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise ValueError(f"{plug_in.name} returned the value {value!r}, which is no number; return measured(…) of one")
    if plug_in.kind is PlugInKind.RULE and value != float(finding.outcome is Outcome.PASS):
        raise ValueError(f"{plug_in.name} is a rule and returned {value}; return ruled(…), or declare it a measurement")
