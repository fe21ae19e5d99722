"""Output checks: what the final answer must be like, each declared under a name of its own (spec section 3).

They read the answer as a text that was produced, never as evidence of what happened.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal, Self

from msgspec.structs import replace
from pydantic import AfterValidator, Field, model_validator

from pipeline.model.run import Run
from pipeline.model.settings import Settings
from pipeline.scorers.amount import AmountSettings, amount_rule
from pipeline.scorers.answer import answer_present
from pipeline.scorers.check import Check, CheckName, Finding, Missing, check_of, unknown
from pipeline.scorers.json_output import JsonSchema, fields_rule, json_rule, schema_rule
from pipeline.scorers.language import Language, language_rule
from pipeline.scorers.predicates import readable
from pipeline.scorers.text_output import Phrase, banned_rule, matches_rule, no_secret_rule

Rule = Callable[[Run, str], Finding]
"""What is said of a run's answer, which is there and not blank."""

_RULES: Final[Mapping[str, Callable[[Any], Rule]]] = {
    "json_text": lambda how: json_rule(fenced=how == "fenced"),
    "json_schema": schema_rule,
    "fields": fields_rule,
    "amount": amount_rule,
    "matches": matches_rule,
    "banned": banned_rule,
    "language": language_rule,
    "no_secret": lambda _: no_secret_rule,
}
"""By the setting that asks for it, how a rule is made of what is written there."""
_OF_FORM: Final = ("json_text", "json_schema", "fields")
"""Rules of the form of the answer: the schema checks of a quality score."""
_BESIDE: Final = {"name", "gate", "safety"}
"""Settings that do not change what is measured."""


class OutputSettings(Settings):
    """One check of the final answer. Exactly one rule says what it is."""

    name: CheckName
    """Its own name; results, windows and gates know the check by it."""
    json_text: Literal["strict", "fenced"] | None = Field(default=None, alias="json")
    """The answer is JSON; ``fenced`` also takes JSON in a Markdown fence."""
    json_schema: JsonSchema | None = Field(default=None, alias="schema")
    """The answer is JSON, fenced or not, and validates against this JSON Schema."""
    fields: tuple[str, ...] = ()
    """The answer is a JSON object, fenced or not, in which these fields are there and not null; a dotted name looks inside."""
    amount: AmountSettings | None = None
    """An amount in the answer equals one that a tool returned."""
    matches: Annotated[str, AfterValidator(readable)] | None = None
    """A pattern as RE2 reads it, which is found in the answer; ``^`` and ``$`` tie it to the ends."""
    banned: tuple[Phrase, ...] = ()
    """Words and phrases that the answer must not hold, in whatever case; "not guaranteed" holds "guaranteed"."""
    language: Language | None = None
    """The language that the answer is written in, by its ISO 639-1 code."""
    no_secret: Literal[True] | None = None
    """The answer held no secret: nothing in it had to be replaced as one."""
    gate: bool | None = None
    """Whether a fail is a fail of the run: yes by default, but not for ``language``."""
    safety: bool | None = None
    """Whether it counts in the safety of a quality score: by default ``no_secret`` does."""

    @model_validator(mode="after")
    def _is_one_rule(self) -> Self:
        if len(self.written) != 1:
            names = ", ".join(type(self).model_fields[rule].alias or rule for rule in _RULES)
            raise ValueError(f"check {self.name} holds {len(self.written)} rules; write exactly one of {names}")
        return self

    @property
    def written(self) -> tuple[str, ...]:
        """The rules that are written."""
        return tuple(rule for rule in _RULES if getattr(self, rule))

    @property
    def gates(self) -> bool:
        """Whether a fail is a fail of the run (spec section 2.1)."""
        return self.language is None if self.gate is None else self.gate

    @property
    def is_safety(self) -> bool:
        """Whether it counts in the safety of a quality score (spec section 5)."""
        return bool(self.no_secret) if self.safety is None else self.safety


def output_check(settings: OutputSettings) -> Check:
    """Return the check of one rule, named like it."""
    definition: dict[str, Any] = settings.model_dump(mode="json", by_alias=True, exclude=_BESIDE, exclude_defaults=True)
    (name,) = settings.written
    rule = _RULES[name](getattr(settings, name))

    def measure(run: Run) -> Finding | None:
        if run.completed and run.answer is not None:
            return rule(run, run.answer)
        if answer_present(run).outcome.decided:
            return None  # There is no answer, and another check says so.
        return unknown(Missing.ANSWER_NOT_CAPTURED, "the answer was not captured")

    check = check_of(settings.name, {"rule": "output", "version": 1, **definition}, measure, gates=settings.gates)
    return replace(check, is_safety=settings.is_safety, is_schema=name in _OF_FORM)
