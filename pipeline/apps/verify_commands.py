"""What ``tracegrade verify`` does: stored scores made again from stored inputs, and what is not equal."""
# ruff: noqa: PLC0415 - a command imports what it needs: the engine alone takes seconds

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from pipeline.apps.commands import ask, print_json, print_line

if TYPE_CHECKING:
    from pipeline.config.tracegrade import TracegradeSettings
    from pipeline.runtime.verifying import Verifier
    from sinks.clickhouse.store import Store

UNKNOWN = "–"
UNEQUAL = 1
"""Exit code where a score could not be made again as it is stored."""


def verify(config: Path | None, run_id: str, limit: int, *, json: bool) -> int:
    """Verify one run, or the latest ones where no id is given."""
    from pipeline.config.load import load

    settings = load(config)

    async def direct(store: "Store", project: str) -> Any:
        verifier = verifier_of(settings, store)
        return [await verifier.one(project, run_id.strip())] if run_id.strip() else await verifier.latest(project, limit)

    found = ask(settings, f"/api/verify?{urlencode({'run': run_id.strip(), 'limit': limit})}", direct)
    if json:
        print_json(found)
    else:
        for line in lines(found):
            print_line(line)
    return UNEQUAL if any(one["differences"] or one["why_not"] for one in found) else 0


def verifier_of(settings: "TracegradeSettings", store: "Store") -> "Verifier":
    """Return what makes scores again under the configuration that is in force."""
    from collectors.dialects import plug_ins
    from pipeline.apps.revision import revision
    from pipeline.config.grading import contracts, grading_of
    from pipeline.runtime.verifying import Verifier
    from pipeline.stages.turn import Assembly

    assembly = Assembly(plug_ins.installed().read, settings.assemble, grading_of(settings), revision=revision())
    return Verifier(store, assembly, contracts(settings))


def lines(found: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what there is to say: every run that is not equal, how many are, and which code graded them."""
    for one in found:
        if one["why_not"]:
            yield f"{one['run_id']}: cannot be made again: {one['why_not']}"
        elif one["differences"]:
            code = f": code {one['revision']} graded it" if one["revision"] not in ("", one["revision_again"]) else ""
            yield f"{one['run_id']}: not equal{code}"
        for each in one["differences"]:
            yield f"  {each['cause']}: {each['what']} is {each['stored']} as stored, {each['again']} made again"
    equal = [one for one in found if not one["differences"] and not one["why_not"]]
    scores = sum(one["scores"] for one in equal)
    yield f"{len(equal)} of {len(found)} runs are equal, {scores} scores in all" if found else "there are no runs"
    if again := next((one["revision_again"] for one in found if one["revision_again"]), ""):
        graded = Counter(one["revision"] or UNKNOWN for one in found)
        yield f"graded by code {', '.join(f'{code} ({runs})' for code, runs in graded.items())}; made again by code {again}"
