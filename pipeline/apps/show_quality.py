"""Show what runs add up to: windows and quality scores. A rate has both bounds beside it, and what was imputed is named."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pipeline.apps.show import UNKNOWN, cell, table, utc
from pipeline.apps.text import visible
from pipeline.model.quality import COMPONENTS
from pipeline.model.rate import Rate
from pipeline.model.time import MINUTE
from pipeline.stages.window import slide_of

SHOWN: Final = 12
"""Digits of an evaluation's id in a list; a prefix finds it."""
IMPUTED: Final = "*"
"""Behind a score of which something was imputed."""


def windows(found: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Return windows, one a row."""
    if not found:
        return Text("No windows here: no run of this dimension, or no window of this length is published.")
    return Group(Text("Windows", style="bold"), *_overlap(found), *(part for one in found for part in _window(one)))


def _overlap(found: Sequence[Mapping[str, Any]]) -> Iterator[RenderableType]:
    """Yield what to know of windows that are not one after the other: who adds them up counts a run several times."""
    for length in sorted({one["length_ns"] for one in found}):
        slide = slide_of(length)
        if slide < length:
            yield Text(
                f"Windows of {length // MINUTE} min start {slide // MINUTE} min apart and overlap: a run is in up to {-(-length // slide)} of them.",
                style="dim",
            )


def _window(one: Mapping[str, Any]) -> Iterator[RenderableType]:
    yield _head(one)
    by = f" ({one['authority']})" if one["authority"] else ""
    yield _indented(f"{visible(one['dimension'])}{by}: {rate_of(one).spoken}")


def _head(one: Mapping[str, Any], name: str = "") -> Text:
    when = f"{utc(one['start_ns'])}, {one['length_ns'] // MINUTE} min"
    return Text(f"{name}{when}  ").append(cell(_cohort(one["cohort"]), longest=80, style="bold"))


def _indented(text: str) -> RenderableType:
    return Padding(Text(text), (0, 0, 0, 2))


def rate_of(line: Mapping[str, Any]) -> Rate:
    """Return the rate of a line as a noun again."""
    return msgspec.convert(line["rate"], Rate)


def evaluations(found: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Return quality scores, one a row."""
    if not found:
        return Text("No quality scores here: no window holds a run yet.")
    return Group(Text("Quality", style="bold"), *_overlap(found), *(part for one in found for part in _block(one)))


def _block(one: Mapping[str, Any]) -> Iterator[RenderableType]:
    yield _head(one, f"{one['id'][:SHOWN]}  ")
    beside = ", ".join(filter(None, (one["evidence"], *one["flags"], _imputed(one["imputed"]))))
    yield _indented(f"{score(one)}{f'; {beside}' if beside else ''}")
    yield _indented(f"pass rate: {rate_of(one).spoken}")


def score(one: Mapping[str, Any]) -> str:
    """Return a score with its bounds, marked where something in it was imputed."""
    if one["score"] is None:
        return f"{UNKNOWN} (no run is decided)"
    mark = IMPUTED if one["imputed"] else ""
    return f"{one['score']}{mark} ({float(one['lower']):.4g} to {float(one['upper']):.4g})"


def _imputed(names: Sequence[str]) -> str:
    return f"{IMPUTED} imputed: {', '.join(names)}" if names else ""


def _cohort(cohort: Mapping[str, Any]) -> str:
    return f"{cohort['agent']} {cohort['version']} {cohort['environment']}"


def evaluation(one: Mapping[str, Any]) -> RenderableType:
    """Return everything that is stored of one evaluation."""
    head = Table.grid(padding=(0, 2))
    for name, value in _facts(one):
        head.add_row(Text(name, style="bold"), Text(visible(value)))
    quality = one["quality"]
    if quality is None:
        return head
    made = table("\nComponents", "component", "value", "", "rate behind it")
    for name in (one for one in COMPONENTS if one in quality["components"]):
        value = quality["components"][name]
        rate = one["rates"].get(name)
        said = UNKNOWN if rate is None else msgspec.convert(rate, Rate).spoken
        made.add_row(name, f"{float(value):.6g}", "imputed" if name in quality["imputed"] else "", said)
    return Group(head, made, _plain("Inputs", quality["inputs"]), _plain("Policy", quality["spec"]))


def _facts(one: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    quality = one["quality"]
    yield "evaluation", one["id"]
    yield (
        "of",
        f"{_cohort(one['cohort'])}, {utc(one['start_ns'])} UTC and {one['length_ns'] // MINUTE} min, series {one['series']}",
    )
    yield "score", f"{UNKNOWN} (no run is decided)" if quality is None else score(quality)
    yield "pass rate", msgspec.convert(one["rates"]["pass"], Rate).spoken
    if quality is None:
        return
    yield "evidence", quality["evidence"]
    yield "flags", ", ".join(quality["flags"]) or UNKNOWN
    yield "imputed", ", ".join(quality["imputed"]) or UNKNOWN
    yield "version", f"{quality['version']}, code {quality['revision'] or UNKNOWN}"
    yield "SHA-256", f"inputs {quality['inputs_hash']}, spec {quality['spec_hash']}"


def _plain(title: str, values: Mapping[str, Any]) -> RenderableType:
    made = table(f"\n{title}", "name", "value")
    for name, value in values.items():
        made.add_row(name, cell(_value(value)))
    return made


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_value(one)}" for name, one in value.items()) or UNKNOWN
    if isinstance(value, list | tuple):
        return ", ".join(map(_value, value)) or UNKNOWN
    return UNKNOWN if value is None or value == "" else str(value)


def policies(found: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Return the policies in force."""
    return Group(*(_plain(f"{one['agent']}: version {one['version']}, SHA-256 {one['spec_hash']}", one["spec"]) for one in found))


def reevaluation(one: Mapping[str, Any]) -> Iterator[str]:
    """Yield what there is to say of an evaluation that was made again."""
    if one["why_not"]:
        yield f"{one['id']}: cannot be made again: {one['why_not']}"
    elif not one["differences"]:
        yield f"{one['id']}: equal, {UNKNOWN if one['score'] is None else one['score']}"
    else:
        yield f"{one['id']}: not equal"
    for each in one["differences"]:
        yield f"  {each['cause']}: {each['what']} is {each['stored']} as stored, {each['again']} made again"
