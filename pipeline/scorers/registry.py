"""Registry: the checks that a configuration asks for, built-in ones and declared ones in one list."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Self

from pydantic import Field, model_validator

from pipeline.errors import ConfigurationError
from pipeline.model.settings import Settings
from pipeline.scorers.answer import ANSWER_PRESENT, AnswerSettings, answer_check
from pipeline.scorers.arguments import INVALID_ARGUMENTS, invalid_arguments_check
from pipeline.scorers.check import Check
from pipeline.scorers.limits import AMOUNTS, LimitsSettings, limit_checks
from pipeline.scorers.loops import LOOPS, loops_check
from pipeline.scorers.output import OutputSettings, output_check
from pipeline.scorers.policies import PolicySettings, policy_check
from pipeline.scorers.recovery import RECOVERY_ERRORS, RECOVERY_RUNS, recovery_check
from pipeline.scorers.tool_errors import TOOL_ERRORS, tool_errors_check
from pipeline.scorers.unknown_tools import UNKNOWN_TOOLS, unknown_tools_check

BUILT_IN: Final = frozenset({ANSWER_PRESENT, TOOL_ERRORS, RECOVERY_ERRORS, LOOPS, UNKNOWN_TOOLS, INVALID_ARGUMENTS, *AMOUNTS})
"""Dimensions of the built-in checks."""
RESERVED: Final = BUILT_IN | {RECOVERY_RUNS, "composite", "verdict"}
"""Names that no declared check may take."""


class ChecksSettings(Settings):
    """What is checked on every run, without a model."""

    answer_present: AnswerSettings = AnswerSettings()
    """The run ended with a final answer."""
    limits: LimitsSettings = LimitsSettings()
    """The most that a run may use."""
    policies: tuple[PolicySettings, ...] = ()
    """What an agent must never do."""
    output: tuple[OutputSettings, ...] = ()
    """What its answers must be like."""
    alternatives: dict[str, tuple[str, ...]] = Field(default={})
    """Tools that make good for another one that failed, by its name."""

    @model_validator(mode="after")
    def _names_are_free(self) -> Self:
        seen: set[str] = set()
        for name in (*(one.name for one in self.policies), *(one.name for one in self.output)):
            if name in RESERVED:
                raise ValueError(f"{name} is the name of a built-in check; give the declared one another name, such as no_{name}")
            if name in seen:
                raise ValueError(f"two checks are called {name}; give each a name of its own")
            seen.add(name)
        return self


Provider = Callable[[ChecksSettings], Iterable[Check]]
"""What a plugin offers (entry-point group ``tracegrade.scorers``), and what the built-in checks come from."""


def trajectory_checks(settings: ChecksSettings) -> Iterator[Check]:
    """Yield the measurements of the trajectory; they never gate."""
    yield tool_errors_check()
    yield recovery_check(settings.alternatives)
    yield loops_check()
    yield unknown_tools_check()
    yield invalid_arguments_check()


def declared_checks(settings: ChecksSettings) -> Iterator[Check]:
    """Yield the checks that the configuration declares: they gate unless it says otherwise, limits only if it does."""
    yield answer_check(settings.answer_present)
    yield from (policy_check(policy) for policy in settings.policies)
    yield from (output_check(output) for output in settings.output)
    yield from limit_checks(settings.limits)


PROVIDERS: Final[tuple[Provider, ...]] = (declared_checks, trajectory_checks)


def checks(settings: ChecksSettings, taken: Iterable[str] = (), providers: Iterable[Provider] = PROVIDERS) -> tuple[Check, ...]:
    """Return the checks of every run, each under a name of its own.

    Raises:
        ConfigurationError: if two checks share a name, or one has a name that is ``taken``, as by a judged dimension of the rubric.
    """
    found: dict[str, Check] = {}
    names = frozenset(taken)
    for provider in providers:
        for check in provider(settings):
            if check.name in names:
                raise ConfigurationError(f"{check.name} is a dimension of the rubric; give the check another name")
            if check.name in found:
                raise ConfigurationError(f"two checks are called {check.name}; give each a name of its own")
            found[check.name] = check
    return tuple(found.values())
