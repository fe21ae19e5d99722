"""Doubts: what a user should know of a configuration that can be used as it is."""

from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

from pipeline.config.consistency import Finding, is_loopback, told
from pipeline.config.grading import Graders, graders_of
from pipeline.config.mistake import Location, Mistake, nearest
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.config.watch import watch
from pipeline.config.yaml_file import YamlFile
from pipeline.judges.settings import JudgeSettings
from pipeline.model.rubric import MeasuredBy, ReferenceUse

_FEWEST: Final = 4
_MOST: Final = 6
"""Dimensions of a rubric of the usual size (spec section 2)."""
_IN_ENVIRONMENT: Final = "env:"


def doubts(settings: TracegradeSettings, file: YamlFile, environment: Mapping[str, str]) -> list[Mistake]:
    """Return the warnings, by line. The settings hold no contradiction."""
    graders = graders_of(settings)
    found = [*_rubrics(graders), *_gates(settings, graders), *_agents(settings), *_variables(settings, environment)]
    return told(file, found)


def _rubrics(graders: Mapping[str, Graders]) -> Iterator[Finding]:
    for name, one in graders.items():
        rubric = one.grading.rubric
        if rubric is None:
            continue
        count = len(rubric.dimensions)
        if not rubric.is_of_criteria and not _FEWEST <= count <= _MOST:
            what = f"the rubric {rubric.name} has {count} dimensions; {_FEWEST} to {_MOST} are the habit: fewer hide what went wrong, more blur it"
            yield ("agents", name, "rubric"), what
        unanswerable = [part.name for part in rubric.dimensions if part.reference is ReferenceUse.REQUIRED]
        if unanswerable and not one.grading.references:
            what = f"the rubric {rubric.name} grades {', '.join(unanswerable)} against reference answers, and agents.{name}.references has none"
            yield ("agents", name, "rubric"), f"{what}: no score comes of that"
        unmeasured = [part.name for part in rubric.dimensions if part.measured_by is MeasuredBy.HUMAN]
        if unmeasured:
            what = (
                f"people measure {', '.join(unmeasured)} of the rubric {rubric.name}: until they have, composites are intervals"
            )
            yield ("agents", name, "rubric"), what


def _gates(settings: TracegradeSettings, graders: Mapping[str, Graders]) -> Iterator[Finding]:
    written = "gates" in settings.model_fields_set
    for index, gate in enumerate(settings.gates):
        if not written and settings.judge.base_url is None:
            continue  # nobody asked for this gate, nor for a judge: the summary says that it holds
        holds = watch(gate, settings, graders).holds
        for why in dict.fromkeys(holds.values()):
            whose = " and ".join(gate.agent or name for name in holds if holds[name] == why)
            yield ("gates", index) if written else ("judge",), f"the gate {gate.name} holds for runs of {whose}: {why}"


def _agents(settings: TracegradeSettings) -> Iterator[Finding]:
    for index, gate in enumerate(settings.gates):
        if gate.agent is not None and gate.agent not in settings.agents and (near := nearest(gate.agent, settings.agents)):
            yield ("gates", index, "agent"), f"no entry of agents is called {gate.agent}, so the default one holds for it{near}"


def _variables(settings: TracegradeSettings, environment: Mapping[str, str]) -> Iterator[Finding]:
    judge, store, keys = settings.judge, settings.store, settings.receiver.keys
    keyed: dict[Location, JudgeSettings] = {("judge", "api_key_env"): judge} if judge.base_url is not None else {}
    keyed |= {("judge", "models", name, "api_key_env"): judge.of(name) for name, one in judge.models.items() if one.api_key_env}
    for at, one in keyed.items():
        absent = one.api_key_file is None and not environment.get(one.api_key_env)
        if absent and not is_loopback(urlsplit(one.base_url or "").hostname):
            yield at, f"the environment has no {one.api_key_env}; set it to the endpoint's key before you start"
    if store.password_env is not None and store.password_env not in environment:
        yield (
            ("store", "password_env"),
            f"the environment has no {store.password_env}; set it to the server's password before you start",
        )
    for project, secrets in keys.items():
        for place, secret in enumerate(secrets):
            name = secret.get_secret_value().removeprefix(_IN_ENVIRONMENT)
            if secret.get_secret_value().startswith(_IN_ENVIRONMENT) and not environment.get(name):
                yield (
                    ("receiver", "keys", project, place),
                    f"the environment has no {name}; set it to the project's key before you start",
                )
