"""The contract of a judged dimension: everything that makes its score, and how its calls are made."""

from typing import Final

import msgspec
from msgspec.structs import replace

from pipeline.judges.prompt import prompt_hash
from pipeline.judges.quote import QUOTE_VERSION
from pipeline.judges.reply import PARSER_VERSION, VERDICT_PARSER_VERSION
from pipeline.judges.settings import JudgeSettings
from pipeline.judges.transcript import TRANSCRIPT_VERSION
from pipeline.model.contract import Contract
from pipeline.model.result import Kind
from pipeline.model.rubric import MeasuredBy, Panel, PanelRule, Rubric

SINGLE: Final = "single-1"
"""One call; its score is the score."""
VOTES: Final = "gate-line-votes-1"
"""One call for each seed; two decided votes on one side of the gate win with the median of that side, else Unknown."""


PANEL: Final = "panel-line-votes-1"
"""One call for each model of the panel. The rule, and how many vetoes it takes, are written behind it."""


class Ballot(msgspec.Struct, frozen=True):
    """How one call of a contract is made."""

    model: str
    seed: int | None
    temperature: float


def judge_contract(rubric: Rubric, dimension: str, settings: JudgeSettings) -> Contract:
    """Return the contract under which a dimension of the rubric is judged by the model of the settings, or by its panel."""
    limit = {"max_tokens": settings.max_output_tokens}
    asked = Contract(
        kind=Kind.JUDGED,
        dimension=dimension,
        rubric_hash=rubric.grading_hash(dimension),
        prompt_hash=prompt_hash(rubric, dimension),
        decoding={"temperature": 0.0, **limit},
        parser_version=VERDICT_PARSER_VERSION if rubric.is_of_criteria else PARSER_VERSION,
        transcript_version=TRANSCRIPT_VERSION,
        evidence_schema=QUOTE_VERSION,
    )
    if panel := rubric.panel(dimension):
        return replace(asked, models=panel.models, aggregation=_panel_rule(panel))
    if rubric.dimension(dimension).gate is None:
        return replace(asked, model=settings.model, aggregation=SINGLE)
    seeded = {"temperature": settings.temperature, "seeds": list(settings.seeds), **limit}
    return replace(asked, model=settings.model, decoding=seeded, aggregation=VOTES)


def judge_contracts(rubric: Rubric, settings: JudgeSettings) -> tuple[Contract, ...]:
    """Return every contract that a dimension of the rubric may be judged under, each once: by ``judge.model``, and by each model of a pairing."""
    asked = [one.name for one in rubric.dimensions if one.measured_by is MeasuredBy.JUDGE]
    alone = [settings, *(settings.of(model) for model in settings.pairing.values())]
    found = [judge_contract(rubric, name, one) for one in alone for name in asked]
    return tuple({one.hash: one for one in found}.values())


def ballots(contract: Contract) -> tuple[Ballot, ...]:
    """Return the calls that a contract asks for, in order: one for each seed, else one for each model."""
    temperature = contract.decoding["temperature"]
    if seeds := contract.decoding.get("seeds"):
        return tuple(Ballot(contract.model, seed, temperature) for seed in seeds)
    return tuple(Ballot(model, None, temperature) for model in contract.judges)


def _panel_rule(panel: Panel) -> str:
    return f"{PANEL}:{panel.rule}" + (f":{panel.vetoes}" if panel.rule is PanelRule.VETO else "")
