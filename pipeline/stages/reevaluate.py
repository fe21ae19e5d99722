"""Reevaluate: a stored quality score made again from stored rows, and whatever is not equal named (scoring, section 5)."""

from collections.abc import Iterator
from typing import Any

import msgspec

from pipeline.model.evaluation import Evaluation
from pipeline.model.quality import QualityScore, QualitySpec, canonical_hash
from pipeline.stages.evaluate import Parts, evaluate
from pipeline.stages.quality import quality
from pipeline.stages.verify import Cause, Difference, flat, shown


class Reevaluation(msgspec.Struct, frozen=True):
    """What became of making an evaluation again; ``why_not`` is why it could not be done, empty where it could."""

    id: str
    score: int | None
    """As stored."""
    again: int | None
    """Made again, under the policy that it was made under."""
    differences: tuple[Difference, ...] = ()
    why_not: str = ""

    @property
    def equal(self) -> bool:
        """Whether it came out as it is stored."""
        return not self.differences and not self.why_not


def reevaluate(stored: Evaluation, parts: Parts, current: QualitySpec) -> Reevaluation:
    """Make an evaluation again from what its minutes add up to now. ``current`` is the policy in force."""
    score = stored.quality
    spec = score.spec if score is not None else current
    again = evaluate(stored.project, stored.cohort, stored.start_ns, stored.length_ns, parts, spec, series=stored.series)
    told = None if score is None else score.score, None if again.quality is None else again.quality.score
    if again.rows < stored.rows:
        return Reevaluation(stored.id, *told, why_not="results of it have expired; what it said while they were there stays said")
    if again.version > stored.version:
        return Reevaluation(stored.id, *told, why_not="results came that it is not made of yet; ask again in a minute")
    found = [*_inputs(stored, again), *(() if score is None else _contents(score, current))]
    return Reevaluation(stored.id, *told, differences=tuple(found))


def _inputs(stored: Evaluation, again: Evaluation) -> Iterator[Difference]:
    """Yield the inputs and rates that stored rows do not give."""
    was, now = (None if one.quality is None else one.quality.inputs for one in (stored, again))
    yield from _differing(Cause.INPUT, "inputs", was, now)
    yield from _differing(Cause.INPUT, "rates", stored.rates, again.rates)


def _contents(score: QualityScore, current: QualitySpec) -> Iterator[Difference]:
    """Yield what is not what its hash says, what the formula does not give, and what the policy in force has otherwise."""
    for name, value, known in (("inputs", score.inputs, score.inputs_hash), ("spec", score.spec, score.spec_hash)):
        if (now := canonical_hash(value)) != known:
            yield Difference(Cause.INPUT if name == "inputs" else Cause.SPEC, f"{name}: hash", known, now)
    yield from _differing(Cause.SCORE, "score", *map(_outcome, (score, quality(score.inputs, score.spec, score.revision))))
    yield from _differing(Cause.SPEC, "spec", score.spec, current)


def _outcome(score: QualityScore) -> dict[str, Any]:
    """Return what the formula gives, without what it was given."""
    given = ("inputs", "spec", "inputs_hash", "spec_hash", "revision")
    return {name: getattr(score, name) for name in score.__struct_fields__ if name not in given}


def _differing(cause: Cause, prefix: str, was: Any, now: Any) -> Iterator[Difference]:
    one, other = (dict(flat(prefix, msgspec.to_builtins(value, str_keys=True))) for value in (was, now))
    for key in sorted(one.keys() | other.keys()):
        if one.get(key) != other.get(key):
            yield Difference(cause, key, shown(one.get(key)), shown(other.get(key)))
