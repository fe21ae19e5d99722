"""What becomes of every kind of reply, sent by a scripted endpoint over real HTTP, beside what must: ``make replies``."""

import asyncio
import re
import sys
from typing import NamedTuple

from judge_builders import Bench, refunded
from judge_replies.rows import ACCEPTED, FORMS, UNKNOWN, Form, Row, rows

from pipeline.config.rubrics import load
from pipeline.judges.scripted import Asked, Canned
from pipeline.model.result import Judgment, Outcome
from pipeline.model.time import SECOND

_NUMBER = re.compile(r"This is number (\d+)\.")


class Heard(NamedTuple):
    """A row, and what became of it."""

    row: Row
    judgment: Judgment
    became: str
    calls: int


async def heard(form: Form, every: int = 1) -> list[Heard]:
    """Have every reply given to a question of its own."""
    table = rows(form, every)

    def reply(asked: Asked) -> Canned:
        return table[_number(asked)].reply

    async with Bench(reply, load(form.rubric), timeout=300 * SECOND) as bench:
        judged = [await bench.judged(form.dimension, refunded(request=f"This is number {at}.")) for at in range(len(table))]
        asked = [_number(one) for one in bench.server.asked]
    return [Heard(row, one, became(one, form), asked.count(at)) for at, (row, one) in enumerate(zip(table, judged, strict=True))]


def _number(asked: Asked) -> int:
    found = _NUMBER.search(asked.seen.request if asked.seen else "")
    if found is None:
        raise ValueError("not one of these questions")
    return int(found[1])


def became(judgment: Judgment, form: Form) -> str:
    """What a judgment is, in the words of the table; a number that nobody gave is told as it is."""
    if judgment.outcome.decided:
        return ACCEPTED if judgment.score == form.score else f"score {judgment.score}"
    if judgment.score is not None:
        return f"{judgment.outcome} with score {judgment.score}"
    if judgment.outcome is Outcome.INSUFFICIENT_EVIDENCE:
        return UNKNOWN
    return judgment.reason.split(":")[0]


def _excerpt(canned: Canned) -> str:
    text = repr(canned.text if canned.text is not None else canned.body)[1:-1]
    return text if len(text) <= 48 else f"{text[:40]} … {len(text)}"


def main() -> int:
    """Print the tables; 1 where something became of a reply that must not."""
    wrong = 0
    for form in FORMS:
        print(f"\n{form.name}; a good one is {form.said()}\n")  # noqa: T201
        for row, judgment, found, calls in asyncio.run(heard(form)):
            right = (found, calls) == (row.becomes, row.calls)
            wrong += not right
            mark = "OK" if right else f"WRONG: {found}, {calls} calls: {judgment.reason}"
            print(f"{row.words:<50} {_excerpt(row.reply):<52} {row.becomes:<16} {row.calls} {mark}")  # noqa: T201
    print("all OK" if not wrong else f"{wrong} WRONG")  # noqa: T201
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
