"""Registry: the checks that a configuration asks for, built-in ones and declared ones in one list."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Self

from pydantic import Field, model_validator

from pipeline.errors import ConfigurationError
from pipeline.model.settings import Settings
from pipeline.scorers.answer import ANSWER_PRESENT, AnswerSettings, answer_check
from pipeline.scorers.arguments import INVALID_ARGUMENTS, invalid_arguments_check
from pipeline.scorers.check import Check
from pipeline.scorers.cost import COST_USD, cost_checks
from pipeline.scorers.efficiency import EFFICIENCY, EfficiencySettings, efficiency_check
from pipeline.scorers.hallucination import ARGUMENT_HALLUCINATION_RATE, hallucination_check
from pipeline.scorers.hand_offs import HAND_OFFS, hand_offs_check
from pipeline.scorers.limits import AMOUNTS, LimitsSettings, limit_checks
from pipeline.scorers.loops import LOOPS, loops_check
from pipeline.scorers.output import OutputSettings, output_check
from pipeline.scorers.plug_ins import PythonSettings, python_check
from pipeline.scorers.policies import PolicySettings, policy_check
from pipeline.scorers.prices import PriceTable
from pipeline.scorers.reading import Source
from pipeline.scorers.record import record_check
from pipeline.scorers.record_settings import RecordSettings
from pipeline.scorers.recovery import RECOVERY_ERRORS, RECOVERY_RUNS, recovery_check
from pipeline.scorers.stalls import STALLS, stalls_check
from pipeline.scorers.tool_errors import TOOL_ERRORS, tool_errors_check
from pipeline.scorers.unknown_tools import UNKNOWN_TOOLS, unknown_tools_check

BUILT_IN: Final = frozenset(
    {
        ANSWER_PRESENT,
        TOOL_ERRORS,
        RECOVERY_ERRORS,
        LOOPS,
        STALLS,
        UNKNOWN_TOOLS,
        INVALID_ARGUMENTS,
        ARGUMENT_HALLUCINATION_RATE,
        EFFICIENCY,
        HAND_OFFS,
        COST_USD,
        *AMOUNTS,
    }
)
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
    records: tuple[RecordSettings, ...] = ()
    """What record sources must say of the effects of its calls."""
    python: tuple[PythonSettings, ...] = ()
    """Checks that installed packages bring."""
    efficiency: EfficiencySettings = EfficiencySettings()
    """How many tool calls a task should take."""
    alternatives: dict[str, tuple[str, ...]] = Field(default={})
    """Tools that make good for another one that failed, by its name."""

    @model_validator(mode="after")
    def _names_are_free(self) -> Self:
        seen: set[str] = set()
        for name in self._declared():
            if name in RESERVED:
                raise ValueError(f"{name} is the name of a built-in check; give the declared one another name, such as no_{name}")
            if name in seen:
                raise ValueError(f"two checks are called {name}; give each a name of its own")
            seen.add(name)
        return self

    def _declared(self) -> Iterator[str]:
        yield from (one.name for one in self.policies)
        yield from (one.name for one in self.output)
        yield from (one.name for one in self.records)
        yield from (one.name for one in self.python)


Provider = Callable[[ChecksSettings], Iterable[Check]]
"""Where checks come from."""


def trajectory_checks(settings: ChecksSettings) -> Iterator[Check]:
    """Yield the measurements of the trajectory; they never gate."""
    yield tool_errors_check()
    yield recovery_check(settings.alternatives)
    yield loops_check()
    yield stalls_check()
    yield unknown_tools_check()
    yield invalid_arguments_check()
    yield hallucination_check()
    yield efficiency_check(settings.efficiency)
    yield hand_offs_check()


def declared_checks(settings: ChecksSettings) -> Iterator[Check]:
    """Yield the checks that the configuration declares: they gate unless it says otherwise, limits only if it does."""
    yield answer_check(settings.answer_present)
    yield from (policy_check(policy) for policy in settings.policies)
    yield from (output_check(output) for output in settings.output)
    yield from limit_checks(settings.limits)


def checks_with_sources(settings: ChecksSettings, sources: Mapping[str, Source]) -> Iterator[Check]:
    """Yield the declared checks that may read record sources; they gate unless the configuration, or a plug-in's kind, says otherwise.

    Raises:
        ConfigurationError: one of them cannot be had as it is written.
    """
    yield from (record_check(one, sources) for one in settings.records)
    yield from (python_check(one, sources) for one in settings.python)


PROVIDERS: Final[tuple[Provider, ...]] = (declared_checks, trajectory_checks)


def checks(
    settings: ChecksSettings,
    taken: Iterable[str] = (),
    providers: Iterable[Provider] = PROVIDERS,
    sources: Mapping[str, Source] | None = None,
    prices: PriceTable | None = None,
) -> tuple[Check, ...]:
    """Return the checks of every run, each under a name of its own; without ``prices`` those that ship hold.

    Raises:
        ConfigurationError: if two checks share a name, or one has a name that is ``taken``, as by a judged dimension of the rubric;
            or one that reads a record source, or that a package brings, cannot be had as it is written.
    """
    found: dict[str, Check] = {}
    names = frozenset(taken)
    with_means = (checks_with_sources(settings, sources or {}), cost_checks(settings.limits, prices or PriceTable()))
    for some in (*(provider(settings) for provider in providers), *with_means):
        for check in some:
            if check.name in names:
                raise ConfigurationError(f"{check.name} is a dimension of the rubric; give the check another name")
            if check.name in found:
                raise ConfigurationError(f"two checks are called {check.name}; give each a name of its own")
            found[check.name] = check
    return tuple(found.values())
