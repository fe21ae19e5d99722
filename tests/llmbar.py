"""Recorded verdicts of 65 judges and prompts on LLMBar's pairs, through the product's records and rules: ``make pairwise``.

Beside each published number stands what the product makes of the same letters, and then what its own rule of both orders decides.
"""

import csv
import json
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from pipeline.model.pairwise import BothOrders, Preference
from pipeline.stages.pairs import PairAgreement, held_against

FOLDER: Final = Path(__file__).parent / "labelled" / "llmbar"
LETTERS: Final = {"1": Preference.A, "2": Preference.B, "-": Preference.GRADER_ERROR}
ADVERSARIAL: Final = ("Adv-Neighbor", "Adv-GPTInst", "Adv-GPTOut", "Adv-Manual")

Labelled = tuple[BothOrders, Preference]
Judge = tuple[str, str]
"""(model, prompt)."""


class Row(NamedTuple):
    """One judge with one prompt on one subset. What is published is in per cent."""

    subset: str
    judge: Judge
    accuracy: float
    agreement: float
    found: PairAgreement

    @property
    def is_right(self) -> bool:
        """Whether both published numbers come out, to the sixth decimal that they are published with."""
        return abs(100 * self.found.each_order - self.accuracy) < 1e-6 and abs(100 * self.found.alike - self.agreement) < 1e-6


@cache
def pairs() -> dict[tuple[str, Judge], list[Labelled]]:
    """Return the pairs of each subset as each judge saw them, with what people prefer."""
    found: dict[tuple[str, Judge], list[Labelled]] = {}
    with (FOLDER / "llmbar_verdicts.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            said = LETTERS[row["label"]]
            for column, letters in row.items():
                if "|" in column and letters:
                    model, prompt = column.split("|")
                    orders = BothOrders(*(LETTERS[letter] for letter in letters))
                    found.setdefault((row["subset"], (model, prompt)), []).append((orders, said))
    return found


@cache
def table() -> list[Row]:
    """Return a row for each published cell."""
    published = json.loads((FOLDER / "llmbar_published.json").read_text(encoding="utf-8"))
    held = pairs()
    rows = []
    for name, (accuracy, agreement) in published.items():
        subset, model, prompt = name.split("|")
        rows.append(Row(subset, (model, prompt), accuracy, agreement, held_against(held[subset, (model, prompt)])))
    return rows


def adversarial(rows: Sequence[Row], judge: Judge) -> float:
    """Return a judge's mean accuracy over the adversarial subsets, in per cent, as it is published."""
    return sum(100 * row.found.each_order for row in rows if row.judge == judge and row.subset in ADVERSARIAL) / len(ADVERSARIAL)


def lines() -> Iterator[str]:
    """Yield the table as it is printed."""
    rows = table()
    yield "every number in per cent             published            found                rule of both orders"
    yield f"{'subset':<13} {'judge':<13} {'prompt':<25} accuracy alike    accuracy alike    coverage accuracy 95 %"
    for row in rows:
        rule = row.found.accuracy
        own = "none" if rule is None else f"{100 * rule.share:8.2f} {100 * rule.low:.1f}-{100 * rule.high:.1f}"
        yield (
            f"{row.subset:<13} {row.judge[0]:<13} {row.judge[1]:<25} {row.accuracy:8.2f} {row.agreement:6.2f}   "
            f"{100 * row.found.each_order:8.2f} {100 * row.found.alike:6.2f}  {100 * row.found.coverage.share:8.2f} {own}"
            f"{'' if row.is_right else '  NOT AS PUBLISHED'}"
        )
    judges = list(dict.fromkeys(row.judge for row in rows))
    held = pairs()
    yield f"{'over all adversarial pairs':<53} mean of subsets   each order            rule of both orders"
    for judge in judges:
        found = held_against([one for subset in ADVERSARIAL for one in held[subset, judge]])
        own = "none" if found.accuracy is None else f"{100 * found.accuracy.share:.2f}"
        yield (
            f"{'':<13} {judge[0]:<13} {judge[1]:<25} {adversarial(rows, judge):8.2f}          {100 * found.each_order:8.2f}"
            f"         {100 * found.coverage.share:8.2f} {own:>8}"
        )
    yield f"{sum(row.is_right for row in rows)} of {len(rows)} cells as published, in both numbers"


def main() -> int:
    """Print the table; 1 where a published number does not come out."""
    for line in lines():
        print(line)  # noqa: T201
    return int(not all(row.is_right for row in table()))


if __name__ == "__main__":
    sys.exit(main())
