"""The language of the answer, told by py3langid's model (spec section 3). It does not gate unless it is made to."""

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, Final

from pydantic import AfterValidator

from pipeline.model.run import Run
from pipeline.scorers.check import Finding, Missing, ruled, unknown

_SURE: Final = 0.8
"""Probability from which on the model is believed; "Done." is Italian to it, at 0.06."""
_LONGEST: Final = 4096
"""Characters that are looked at."""


def _known(code: str) -> str:
    if code not in _identifier().labels:
        raise ValueError(f"{code!r} is no language that is recognised; write a code of ISO 639-1, such as en, de or zh")
    return code


Language = Annotated[str, AfterValidator(_known)]
"""A code of ISO 639-1 that the model knows."""


def language_rule(code: str) -> Callable[[Run, str], Finding]:
    """Return the rule that the answer is in this language. An answer too short to tell is undecided."""

    def rule(_: Run, answer: str) -> Finding:
        found, probability = _identifier().classify(answer[:_LONGEST])
        if probability < _SURE:
            return unknown(Missing.LANGUAGE_NOT_CLEAR, f"it looks like {found}, at a probability of {probability:.2f}")
        holds = found == code
        return ruled(holds=holds, reason="" if holds else f"the answer is in {found}, not in {code}", evidence=answer[:120])

    return rule


@cache
def _identifier() -> Any:
    """Load the model where a language is asked for, and only there: it takes a second and 60 MiB."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # noqa: PLC0415 - see above

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
