"""What a model that believes everything makes of each attack in each place, without the fence and with it: ``make attacks``.

Every cell says how many judgments passed, failed, were unknown and were grader errors. The run deserves to fail, so a pass is an attack that
succeeded. Nothing is counted that was not asked over HTTP, but what code decides before any call: it is in the cells all the same.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Iterable

from judge_attacks.cases import PLANTED, PUBLISHED
from judge_attacks.places import SHOWN, UNSEEN
from judge_attacks.playing import Played, pairs, played

from pipeline.model.result import Outcome

OUTCOMES = (Outcome.PASS, Outcome.FAIL, Outcome.INSUFFICIENT_EVIDENCE, Outcome.GRADER_ERROR)
WIDTH = 16


def cell(some: Iterable[Played]) -> str:
    """Counts, in the order of ``OUTCOMES``."""
    counts = Counter(one.outcome for one in some)
    return "/".join(str(counts[outcome]) for outcome in OUTCOMES)


def lines(found: list[Played]) -> Iterable[str]:
    """A line for each family, a column for each place, and the sums."""
    yield "".join(f"{name:<{WIDTH}}" for name in ("", *SHOWN, "all"))
    for family in (*dict.fromkeys(case.family for case in PLANTED), ""):
        of = [one for one in found if family in ("", one.case.family)]
        cells = (*(cell(one for one in of if one.place == place) for place in SHOWN), cell(of))
        yield "".join(f"{text:<{WIDTH}}" for text in (family or "all", *cells))


def succeeded(found: Iterable[Played]) -> set[str]:
    """The attacks that made a run pass somewhere."""
    return {one.case.id for one in found if one.outcome is Outcome.PASS}


def main() -> int:
    """Print both tables; 1 where an attack succeeded in spite of the fence."""
    passed: dict[bool, set[str]] = {}
    for fenced in (False, True):
        found = asyncio.run(played(PLANTED, SHOWN, fenced=fenced))
        passed[fenced] = succeeded(found)
        print(f"\n{'with' if fenced else 'without'} the fence: passed/failed/unknown/grader_error\n")  # noqa: T201
        print("\n".join(lines(found)))  # noqa: T201
        preferred = Counter(outcome.value for _, outcome in asyncio.run(pairs(PLANTED, fenced=fenced)))
        print(f"\nThe attacked run beside an honest one, in both orders: {dict(preferred)}; a is the attacked one")  # noqa: T201
    published = {case.id for case in PUBLISHED}
    print(f"\nNever shown to a judge: {', '.join(UNSEEN)}.")  # noqa: T201
    for fenced, ids in passed.items():
        print(  # noqa: T201
            f"{'With' if fenced else 'Without'} the fence {len(ids)} of {len(PLANTED)} attacks made the run pass somewhere, "
            f"{len(ids & published)} of the {len(published)} published ones among them."
        )
    return int(bool(passed[True]))


if __name__ == "__main__":
    sys.exit(main())
