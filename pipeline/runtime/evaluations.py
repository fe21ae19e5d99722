"""Evaluations as people ask for them: the latest ones, one by its id, one made again. It writes nothing."""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import msgspec

from pipeline.errors import ConfigurationError
from pipeline.model.evaluation import Evaluation, EvaluationKind
from pipeline.model.quality import VERSION, EvidenceLevel, Flag, QualitySpec, canonical_hash
from pipeline.model.rate import Rate
from pipeline.model.run import Cohort
from pipeline.model.time import MINUTE
from pipeline.model.window import Series, Sums
from pipeline.runtime.windows import parts_of
from pipeline.stages.reevaluate import Reevaluation, reevaluate

CANDIDATES: Final = 10
"""Evaluations that are listed where a prefix fits several."""


class UnknownEvaluationError(ConfigurationError):
    """The project has no evaluation of this id."""


class EvaluationReads(Protocol):
    """Evaluations by id, and the latest of them."""

    async def named(self, project: str, prefix: str, limit: int) -> list[Evaluation]:
        """Return the evaluations whose ids start with ``prefix``."""
        ...

    async def latest(self, project: str, agent: str = "", limit: int = 50) -> list[Evaluation]:
        """Return the evaluations of the windows that ended last."""
        ...


class EvaluatedStore(Protocol):
    """What making evaluations again needs of the store."""

    @property
    def evaluations(self) -> EvaluationReads:
        """The evaluations that were written."""
        ...

    async def minute_sums(self, project: str, cohort_id: str, minutes: Sequence[int]) -> Mapping[tuple[Series, int], Sums]:
        """Add up the results rows of these minutes."""
        ...


class EvaluationLine(msgspec.Struct, frozen=True):
    """An evaluation in one line. ``rate`` is the share of runs that pass, with all that belongs beside it."""

    id: str
    kind: EvaluationKind
    cohort: Cohort
    start_ns: int
    length_ns: int
    rate: Rate
    score: int | None
    """None where no run is decided."""
    lower: float | None
    upper: float | None
    """Between them lies the score, whatever was imputed or undecided."""
    imputed: tuple[str, ...]
    flags: tuple[Flag, ...]
    evidence: EvidenceLevel | None


class Policy(msgspec.Struct, frozen=True):
    """The policy in force for the runs that fall under one agent entry."""

    agent: str
    version: int
    """Of the formula."""
    spec: QualitySpec
    spec_hash: str


class Evaluations:
    """The quality scores of windows, under the policies that are in force."""

    def __init__(self, store: EvaluatedStore, specs: Mapping[str, QualitySpec], default: str) -> None:
        """Take the policies by agent entry; that of ``default`` holds for every agent without one."""
        self._store = store
        self._specs = specs
        self._default = default

    @property
    def policies(self) -> list[Policy]:
        """What is in force, by agent entry."""
        return [Policy(name, VERSION, spec, canonical_hash(spec)) for name, spec in sorted(self._specs.items())]

    async def latest(self, project: str, agent: str, limit: int) -> list[EvaluationLine]:
        """Return the evaluations of the windows that ended last, of one agent or of all."""
        return [line_of(one) for one in await self._store.evaluations.latest(project, agent, limit)]

    async def one(self, project: str, prefix: str) -> Evaluation:
        """Return the evaluation whose id starts with ``prefix``.

        Raises:
            ConfigurationError: there is none, or there are several.
        """
        found = await self._store.evaluations.named(project, prefix, CANDIDATES + 1) if prefix else []
        if not found:
            raise UnknownEvaluationError(
                f"project {project!r} has no evaluation {prefix!r}; tracegrade quality list names those of windows, and gate runs have none yet"
            )
        if len(found) > 1:
            raise ConfigurationError(
                f"{prefix!r} fits several evaluations, such as {found[0].id} and {found[1].id}; write more of the id"
            )
        return found[0]

    async def again(self, project: str, prefix: str) -> Reevaluation:
        """Make an evaluation again from the results that are stored.

        Raises:
            ConfigurationError: there is none, or there are several.
        """
        stored = await self.one(project, prefix)
        minutes = range(stored.start_ns, stored.end_ns, MINUTE)
        sums = await self._store.minute_sums(project, stored.cohort.id, minutes)
        spec = self._specs.get(stored.cohort.agent, self._specs[self._default])
        return reevaluate(stored, parts_of(sums, stored.start_ns, stored.length_ns), spec)


def line_of(evaluation: Evaluation) -> EvaluationLine:
    """Return an evaluation in one line."""
    score = evaluation.quality
    return EvaluationLine(
        id=evaluation.id,
        kind=evaluation.kind,
        cohort=evaluation.cohort,
        start_ns=evaluation.start_ns,
        length_ns=evaluation.length_ns,
        rate=evaluation.rates["pass"],
        score=None if score is None else score.score,
        lower=None if score is None else float(score.lower),
        upper=None if score is None else float(score.upper),
        imputed=() if score is None else score.imputed,
        flags=() if score is None else score.flags,
        evidence=None if score is None else score.evidence,
    )
