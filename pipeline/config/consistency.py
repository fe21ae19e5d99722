"""Consistency: parts of the configuration that are right by themselves and do not fit together."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from ipaddress import ip_address
from typing import Final, TypeAlias

from pipeline.config import references, rubrics
from pipeline.config.duration import spoken_duration
from pipeline.config.grading import Graders, graders_of, judged_dimensions
from pipeline.config.judge_price import priced
from pipeline.config.mistake import Location, Mistake, nearest, spoken
from pipeline.config.records import source_of
from pipeline.config.redaction import Detector
from pipeline.config.tracegrade import SHIPPED_RUBRICS, AgentSettings, TracegradeSettings
from pipeline.config.watch import entries_of
from pipeline.config.yaml_file import YamlFile
from pipeline.errors import ConfigurationError
from pipeline.judges import calibration
from pipeline.judges.settings import JudgeSettings
from pipeline.model.risk import at_risk
from pipeline.model.rubric import MeasuredBy, Rubric
from pipeline.scorers import checks
from pipeline.scorers.plug_ins import python_check
from pipeline.scorers.reading import Source
from pipeline.scorers.record import record_check
from pipeline.stages.gate import HardGate

Finding: TypeAlias = tuple[Location, str]
"""Where, and what to write instead."""


def contradictions(settings: TracegradeSettings, file: YamlFile) -> list[Mistake]:
    """Return what keeps the settings from being used, by line."""
    found = [finding for rule in _RULES for finding in rule(settings)]
    grading = [*_rubrics_and_checks(settings), *_calibration(settings)]
    # What the gates watch can be told only where everything that grades is known.
    found += grading or _unknown_dimensions(settings, graders_of(settings))
    return told(file, found)


def told(file: YamlFile, findings: Iterable[Finding]) -> list[Mistake]:
    """Return findings as mistakes by line, without what the environment holds."""
    return sorted(Mistake(file.line(at), spoken(at), file.conceal(what, at)) for at, what in findings)


def is_loopback(host: str | None) -> bool:
    """Whether an address is this machine's own, reached by nobody else."""
    try:
        return host == "localhost" or ip_address(host or "").is_loopback
    except ValueError:
        return False


def _repeated_names(settings: TracegradeSettings) -> Iterator[Finding]:
    for section in ("gates", "alerts"):
        seen: dict[str, int] = {}
        for index, one in enumerate(getattr(settings, section)):
            first = seen.setdefault(one.name, index)
            if first != index:
                yield (section, index, "name"), f"{one.name} is the name of {section}[{first}] too; give each a name of its own"


def _unknown_alerts(settings: TracegradeSettings) -> Iterator[Finding]:
    known = [alert.name for alert in settings.alerts]
    for index, gate in enumerate(settings.gates):
        for place, name in enumerate(gate.notify or ()):
            if name not in known:
                what = f"no alert is called {name}{nearest(name, known) or ';'}"
                yield ("gates", index, "notify", place), f"{what} {_choice('the alerts are', known, 'write it under alerts')}"


def _receiver(settings: TracegradeSettings) -> Iterator[Finding]:
    receiver = settings.receiver
    if receiver.grpc_port == receiver.http_port != 0:
        yield ("receiver", "http_port"), f"both ports are {receiver.http_port}; write two different ones, such as 4317 and 4318"
    if not receiver.keys and not is_loopback(receiver.host):
        what = f"{receiver.host} can be reached from other machines, and no key is configured; write receiver.keys, or host: 127.0.0.1"
        yield ("receiver", "host"), what
    if receiver.project != settings.project:
        what = f"is {receiver.project}, and the project at the top is {settings.project}; write the project at the top only"
        yield ("receiver", "project"), what


def _retention(settings: TracegradeSettings) -> Iterator[Finding]:
    if settings.kafka is None:
        return
    read_late = settings.kafka.retention
    kept: dict[Location, int] = {("retention", "projects", name): one for name, one in settings.retention.projects.items()}
    kept["retention", "spans"] = settings.retention.spans
    for at, one in sorted(kept.items()):
        if one < read_late:
            least = spoken_duration(read_late)
            what = (
                f"is {spoken_duration(one)}, and records of Kafka are read for {least}: some would expire before they are graded"
            )
            yield at, f"{what}; write {least} or more, or a shorter kafka.retention"


def _judge(settings: TracegradeSettings) -> Iterator[Finding]:
    judge = priced(settings)
    for one in map(judge.of, judge.ids if judge.budget.is_set and judge.base_url is not None else ()):
        if one.price is None:
            yield (
                ("judge", "budget"),
                f"nobody knows what {one.model} costs; write {one.at}.price, so that what is spent can be told",
            )


def _redaction(settings: TracegradeSettings) -> Iterator[Finding]:
    for name in settings.redaction.detectors:
        if name not in tuple(Detector):
            what = f"no detector is called so{nearest(name, Detector) or ';'} {_choice('the detectors are', Detector)}"
            yield ("redaction", "detectors", name), what
    seen: set[str] = set(Detector)
    for index, rule in enumerate(settings.redaction.rules):
        if rule.name in seen:
            what = f"{rule.name} is the name of a detector or of another rule; give each rule a name of its own"
            yield ("redaction", "rules", index, "name"), what
        seen.add(rule.name)


def _secrets_unsought(settings: TracegradeSettings) -> Iterator[Finding]:
    for name, entry in settings.agents.items() if settings.redaction.off else ():
        for index, output in enumerate(entry.checks.output):
            if output.no_secret:
                what = f"{output.name} reads what redaction found, and redaction.off is true; remove one of the two"
                yield ("agents", name, "checks", "output", index, "no_secret"), what


def _rubrics_and_checks(settings: TracegradeSettings) -> Iterator[Finding]:
    sources, unusable = _sources(settings)
    yield from unusable
    for name, entry in settings.agents.items():
        rubric: Rubric | None = None
        if entry.rubric is not None:
            try:
                rubric = rubrics.load(entry.rubric)
            except ConfigurationError as error:
                yield ("agents", name, "rubric"), f"{error}{nearest(str(entry.rubric).rpartition('/')[2], SHIPPED_RUBRICS)}"
        yield from _risk(name, entry, rubric)
        yield from _references(name, entry, rubric)
        yield from _panelists(name, rubric, settings.judge)
        yield from _clashes(name, entry, rubric, None if unusable else sources)


def _risk(name: str, entry: AgentSettings, rubric: Rubric | None) -> Iterator[Finding]:
    if entry.risk is None:
        return
    try:
        if rubric is not None:
            at_risk(rubric, entry.risk)
    except ConfigurationError as error:
        yield ("agents", name, "risk"), str(error)
    if entry.rubric is None:
        yield ("agents", name, "risk"), f"{entry.risk} sets the bar of a rubric, and there is none; remove it, or name a rubric"


def _references(name: str, entry: AgentSettings, rubric: Rubric | None) -> Iterator[Finding]:
    at = ("agents", name, "references")
    try:
        references.load(entry.references)
    except ConfigurationError as error:
        yield at, str(error)
    if entry.references is not None and (rubric is None or not rubric.reads_references):
        yield at, "no judged dimension reads them; write `reference: used` or `reference: required` on one, or remove the file"


def _panelists(name: str, rubric: Rubric | None, judge: JudgeSettings) -> Iterator[Finding]:
    """Yield the models of panels that nobody could ask. Without a judge nothing is asked at all."""
    if rubric is None or judge.base_url is None:
        return
    for dimension, panel in rubric.panels:
        for model in panel.models:
            if model not in judge.ids:
                yield ("agents", name, "rubric"), f"on the panel of {dimension} of {rubric.name}: {judge.unknown(model)}"


def _clashes(name: str, entry: AgentSettings, rubric: Rubric | None, sources: Mapping[str, Source] | None) -> Iterator[Finding]:
    taken = judged_dimensions(rubric)
    clashing = [
        (section, index, one.name)
        for section in ("policies", "output", "records", "python")
        for index, one in enumerate(getattr(entry.checks, section))
        if one.name in taken
    ]
    for section, index, check in clashing:
        what = f"{check} is a dimension of the rubric; give the check another name, such as {check}_rule"
        yield ("agents", name, "checks", section, index, "name"), what
    if sources is None:
        return
    unusable = list(_unusable(name, entry, sources))
    yield from unusable
    if rubric is None or clashing or unusable:
        return
    in_code = {check.name for check in checks(entry.checks, taken, sources=sources)}
    for dimension in rubric.dimensions:
        if dimension.measured_by is MeasuredBy.CODE and dimension.name not in in_code:
            what = f"{rubric.name} measures {dimension.name} by code, and no check is called so; {_choice('the checks are', in_code)}"
            yield ("agents", name, "rubric"), what


def _sources(settings: TracegradeSettings) -> tuple[dict[str, Source], list[Finding]]:
    found: dict[str, Source] = {}
    unusable: list[Finding] = []
    for name, one in settings.records.items():
        try:
            found[name] = source_of(name, one)
        except ConfigurationError as error:
            unusable.append((("records", name), str(error)))
    return found, unusable


def _unusable(name: str, entry: AgentSettings, sources: Mapping[str, Source]) -> Iterator[Finding]:
    made: dict[str, list[Callable[[], object]]] = {
        "records": [partial(record_check, one, sources) for one in entry.checks.records],
        "python": [partial(python_check, one, sources) for one in entry.checks.python],
    }
    for section, some in made.items():
        for index, make in enumerate(some):
            try:
                make()
            except ConfigurationError as error:
                yield ("agents", name, "checks", section, index), str(error)


def _calibration(settings: TracegradeSettings) -> Iterator[Finding]:
    try:
        calibration.load(settings.judge.calibration)
    except ConfigurationError as error:
        yield ("judge", "calibration"), str(error)


def _unknown_dimensions(settings: TracegradeSettings, graders: dict[str, Graders]) -> Iterator[Finding]:
    for index, gate in enumerate(settings.gates):
        known = sorted({one for entry in entries_of(gate, settings) for one in graders[entry].dimensions})
        if isinstance(gate, HardGate):
            named: list[tuple[Location, str]] = [(("dimensions", place), one) for place, one in enumerate(gate.dimensions or ())]
        else:
            named = [(("dimension",), gate.dimension)]
        for at, dimension in named:
            if dimension not in known:
                whose = f"the runs of {gate.agent}" if gate.agent is not None else "no agent's runs"
                lacking = (
                    f"{whose} have no dimension {dimension}"
                    if gate.agent is not None
                    else f"{whose} have a dimension {dimension}"
                )
                yield (
                    ("gates", index, *at),
                    f"{lacking}{nearest(dimension, known) or ';'} {_choice('they have', known, 'they have none')}",
                )


def _choice(words: str, known: Iterable[str], otherwise: str = "none") -> str:
    listed = ", ".join(sorted(known))
    return f"{words}: {listed}" if listed else otherwise


_RULES: Final[tuple[Callable[[TracegradeSettings], Iterable[Finding]], ...]] = (
    _repeated_names,
    _unknown_alerts,
    _receiver,
    _judge,
    _redaction,
    _secrets_unsought,
    _retention,
)
