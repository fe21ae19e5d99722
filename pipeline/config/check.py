"""Check: what is wrong with a configuration by line, and what it comes to where nothing is. ``tracegrade check`` shows it."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from pipeline.config.grading import Graders, graders_of
from pipeline.config.load import read
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.config.watch import Watch, entry_name, watch
from pipeline.judges.settings import JudgeSettings
from pipeline.model.result import Kind
from pipeline.model.risk import Risk
from pipeline.model.rubric import Rubric


class GradedDimension(msgspec.Struct, frozen=True):
    """A dimension of an agent's runs. ``contract`` and ``dimension`` are what a calibration file names."""

    dimension: str
    kind: Kind
    contract: str
    gates: bool
    """Whether a fail is a fail of the run."""
    authority: str = ""
    """What the judge's word is worth; empty for what code measures."""
    judges: tuple[str, ...] = ()
    """The models that are asked; several are a panel."""
    agents: str = ""
    """The family of an agent's models for whose runs a pairing has this contract; empty for all others."""


class AgentSummary(msgspec.Struct, frozen=True):
    """How the runs of one agent entry are graded."""

    agent: str
    rubric: str
    """Name and version, and what its risk makes of it; empty where nothing is judged."""
    sampling: str
    dimensions: tuple[GradedDimension, ...]


class Summary(msgspec.Struct, frozen=True):
    """What a configuration comes to."""

    project: str
    store: str
    judge: str
    agents: tuple[AgentSummary, ...]
    gates: tuple[Watch, ...]
    alerts: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        """Yield the summary as it reads in a terminal."""
        yield f"project {self.project}, store {self.store}, judge {self.judge}"
        for agent in self.agents:
            yield f"agent {entry_name(agent.agent)}: {agent.rubric or 'no rubric'}, judged: {agent.sampling}"
            width = max(len(one.dimension) for one in agent.dimensions)
            for one in agent.dimensions:
                by = (
                    ""
                    if not one.judges
                    else f"by {', '.join(one.judges)}" + (f" for agents of {one.agents}" if one.agents else "")
                )
                notes = "; ".join(part for part in ("gates" if one.gates else "", one.authority, by) if part)
                yield f"  {one.dimension:{width}}  {one.kind:8}  {one.contract}  {notes}".rstrip()
        for gate in self.gates:
            yield f"gate {gate.gate} ({gate.kind}): {gate.rule}"
            for entry, dimensions in gate.dimensions.items():
                whose = gate.agent or entry_name(entry)
                yield f"  watches {', '.join(dimensions) or 'nothing'} of {whose}"
                if entry in gate.holds:
                    yield f"    and holds there: {gate.holds[entry]}"
            yield f"  notifies {', '.join(gate.notifies) or 'nobody'}"


class CheckReport(msgspec.Struct, frozen=True):
    """What there is to say of a configuration. With errors there is no summary."""

    file: str
    errors: tuple[str, ...]
    """``tracegrade.yaml:12: agents.support.sampling.rate: …``, in the order of the file."""
    warnings: tuple[str, ...]
    summary: Summary | None

    @property
    def ok(self) -> bool:
        """Whether the configuration can be used."""
        return not self.errors


def check(path: Path | None = None, environment: Mapping[str, str] = os.environ) -> CheckReport:
    """Check a file, or the one in the working directory, or the defaults where there is none. It never raises for what is written.

    The files and the folder that it names are looked at too, on this machine.
    """
    loaded = read(path, environment)
    return CheckReport(
        file=loaded.name,
        errors=tuple(one.at(loaded.name) for one in (*loaded.mistakes, *loaded.outside)),
        warnings=tuple(one.at(loaded.name) for one in loaded.warnings),
        summary=summary(loaded.settings) if loaded.settings is not None and not loaded.outside else None,
    )


def summary(settings: TracegradeSettings) -> Summary:
    """Return what settings come to.

    Raises:
        ConfigurationError: a rubric, the calibration or a check cannot be had as written.
    """
    graders = graders_of(settings)
    return Summary(
        project=settings.project,
        store=settings.store.url or str(settings.store.path),
        judge=_judge(settings.judge),
        agents=tuple(_agent(name, one, settings.entries[name].risk) for name, one in graders.items()),
        gates=tuple(watch(gate, settings, graders) for gate in settings.gates),
        alerts=tuple(alert.name for alert in settings.alerts),
    )


def _judge(judge: JudgeSettings) -> str:
    if judge.base_url is None:
        return "none: judged dimensions stay unresolved (no_judge)"
    return ", ".join(f"{one.model} at {one.base_url}" for one in map(judge.of, judge.ids))


def _rubric(rubric: Rubric, risk: Risk | None) -> str:
    named = f"rubric {rubric.name} {rubric.version}"
    return named if risk is None else f"{named}, {risk}: bar {rubric.bar.normalize():f}"


def _agent(name: str, graders: Graders, risk: Risk | None) -> AgentSummary:
    grading, rubric = graders.grading, graders.grading.rubric
    in_code = [GradedDimension(one.name, Kind.CODE, one.contract, one.gates) for one in grading.checks]
    judges = {one.hash: one.judges if grading.judge_configured else () for one in graders.judged}
    gated = {one.name for one in rubric.dimensions if one.gate is not None} if rubric is not None else set()
    families: dict[str, list[str]] = {one.contract: [] for one in grading.judged}
    for family, pairing in grading.pairings.items():
        for one in pairing.judged:
            if one not in grading.judged:
                families.setdefault(one.contract, []).append(family)
    judged = [
        GradedDimension(
            one.name,
            Kind.JUDGED,
            one.contract,
            one.name in gated,
            one.authority,
            judges[one.contract],
            ", ".join(families[one.contract]),
        )
        for one in grading.every_judged
    ]
    verdict = GradedDimension("verdict", Kind.VERDICT, grading.contract, gates=False)
    keep = ", ".join(f"all with {rule.replace('_', ' ')}" for rule in grading.sampling.keep)
    sampling = f"{grading.sampling.rate:.0%} of runs{f' and {keep}' if keep and grading.sampling.rate < 1 else ''}"
    return AgentSummary(
        agent=name,
        rubric=_rubric(rubric, risk) if rubric is not None else "",
        sampling=sampling if judged else "nothing",
        dimensions=(*in_code, *judged, verdict),
    )
