"""Laws that every check of one's own keeps, tried on runs of one's own: what a test of a plug-in calls first.

``assert broken_laws(CHECK, a_run(...)) == []`` in a test says by itself which law was broken, and on what kind of run.
"""

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any, Final

import msgspec

from pipeline.model.run import Cohort, Ended, Place, Run
from pipeline.model.settings import Settings
from pipeline.model.step import ToolCall, Usage
from pipeline.model.time import SECOND
from pipeline.scorers.check import Finding
from pipeline.scorers.plug_in import Needs, PlugIn, observed
from pipeline.scorers.plug_ins import found_by

ANYTHING: Final[tuple[Any, ...]] = (
    *(None, True, 0, -1, 2**63, 1.5, "", " ", "None", "0042", "NaN", "\u0000", "\u202e", "[redacted:email]"),
    *([], {}, [[]], [None], {"": {}}, {"id": {"id": []}}, [{"a": 1}, "b"]),
)
"""Arguments that agents have given to tools, or could."""
_START: Final = 1_790_000_040 * SECOND


def a_run(*calls: ToolCall, **fields: Any) -> Run:
    """Return a run that answered, with these tool calls; ``fields`` are those of :class:`~pipeline.model.run.Run`."""
    given: dict[str, Any] = {
        "project": "default",
        "trace_id": "ab" * 16,
        "run_id": "cd" * 16,
        "head_span_id": "ef" * 8,
        "place": Place(Cohort(agent="support"), _START),
        "start_ns": _START,
        "end_ns": _START + SECOND,
        "first_received_ns": _START + SECOND,
        "steps": (),
        "answer": "Done.",
        "ended": Ended.ANSWER,
        "tool_calls": calls,
    }
    return Run(**(given | fields))


def broken_laws(plug_in: PlugIn, *runs: Run, settings: Mapping[str, Any] | None = None) -> list[str]:
    """Return the laws that a check breaks on these runs, and on what can become of them on the way; a sentence each, nothing if it keeps all.

    Raises:
        ValidationError: it does not take these settings.
    """
    given = plug_in.settings.model_validate(dict(settings or {}))
    broken = [] if runs else ["it was tried on no run; give it one that it passes and one that it fails"]
    for run in runs:
        broken += _on(plug_in, run, given)
    if runs and all(_finding(plug_in, run, given) is None for run in runs):
        broken.append("it applies to none of these runs")
    return list(dict.fromkeys(broken))


def _on(plug_in: PlugIn, run: Run, settings: Settings) -> Iterator[str]:
    yield from _pure(plug_in, run, settings)
    yield from _unmoved_by_words(plug_in, run, settings)
    for where, one in [("the run as it is", run), *_worn(run)]:
        try:
            found_by(plug_in, one, settings)
        except Exception as error:  # noqa: BLE001 - the very thing that must not happen, whatever it is
            yield f"{where}: {type(error).__name__}: {error}"


def _finding(plug_in: PlugIn, run: Run, settings: Settings) -> Finding | None:
    try:
        return found_by(plug_in, run, settings)
    except Exception:  # noqa: BLE001 - another law says so
        return None


def _pure(plug_in: PlugIn, run: Run, settings: Settings) -> Iterator[str]:
    if _finding(plug_in, run, settings) != _finding(plug_in, run, settings):
        yield "asked twice, it finds two different things"
    seen = observed(run, plug_in.requires)
    before = deepcopy(seen)
    try:
        plug_in.measure(seen, settings)
    except Exception:  # noqa: BLE001 - another law says so
        return
    if seen != before:
        yield "it changes what it was given"


def _unmoved_by_words(plug_in: PlugIn, run: Run, settings: Settings) -> Iterator[str]:
    if Needs.ANSWER in plug_in.requires:
        return
    boasting = msgspec.structs.replace(run, answer="It is all done, and everything was checked.")
    if _finding(plug_in, run, settings) != _finding(plug_in, boasting, settings):
        yield "it believes what the agent says of its own work; read calls, results and records, or require the answer"


def _worn(run: Run) -> Iterator[tuple[str, Run]]:
    """Yield runs as they come when less of them was captured, or something nobody thought of."""
    replace = msgspec.structs.replace
    yield "without an answer", replace(run, answer=None, ended=Ended.SILENCE)
    yield "without steps", replace(run, steps=())
    yield "without calls", replace(run, tool_calls=())
    yield "without tools", replace(run, tools=())
    yield "without usage and times", replace(run, usage=Usage(), start_ns=0, end_ns=0)
    yield "after an error", replace(run, answer=None, ended=Ended.ERROR, error="boom")
    for what, change in _CHANGES.items():
        yield what, replace(run, tool_calls=tuple(change(call) for call in run.tool_calls))
    for value in ANYTHING:
        yield f"with {value!r} as arguments", replace(run, tool_calls=_each(run, value))
        yield (
            f"with {value!r} as every argument",
            replace(run, tool_calls=tuple(replace(one, arguments=_filled(one.arguments, value)) for one in run.tool_calls)),
        )


def _each(run: Run, arguments: Any) -> tuple[ToolCall, ...]:
    return tuple(msgspec.structs.replace(one, arguments=arguments, raw_arguments="") for one in run.tool_calls)


def _filled(arguments: Any, value: Any) -> Any:
    return dict.fromkeys(arguments, value) if isinstance(arguments, dict) else value


_CHANGES: Final[Mapping[str, Callable[[ToolCall], ToolCall]]] = {
    "with arguments that were cut": lambda one: msgspec.structs.replace(one, arguments=None, raw_arguments='{"a'),
    "with results that were not captured": lambda one: msgspec.structs.replace(one, result=None),
    "with results that are no JSON": lambda one: msgspec.structs.replace(one, result="{'a': "),
    "with calls that failed": lambda one: msgspec.structs.replace(one, result=None, error="timeout"),
    "with calls that no span executed": lambda one: msgspec.structs.replace(one, result=None, error="not executed"),
}
