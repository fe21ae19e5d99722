"""Signs that a run's content speaks to its grader: recorded with the judgment, and changing nothing in it."""

import re
from collections.abc import Iterable
from typing import Final

from pipeline.judges.transcript import Document

_SIGNS: Final = re.compile(
    r"""
      \b(ignore|disregard|forget)\b .{0,40} \b(instructions?|criteria|rules?|rubric|model\ outputs|anchors)\b
    | \b(award|give|assign|return|output|grant)\b .{0,30} \b(full|maximum|max|highest|top|perfect)\b .{0,10} \b(marks?|scores?|points|grades?)\b
    | \b(always|only)\ (output|return|answer)\b .{0,20} \b(pass|5|10)\b
    | \b(grader|evaluator|judge)\s*: | \b(evaluation|grading)\ (is\ )?(finished|complete|over)\b | \bpassed\ human\ review\b
    | ["'](score|verdict|grade)["']\s*:
    | \[\[[AB]\]\]
    | </?(system|candidate|instructions?)> | <\| | \[/?INST\] | =+\s*(BEGIN|END)\s+DATA
    | 满分 | 最高分
    """,
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)


def suspected(document: Document) -> bool:
    """Whether anything in the run reads like an instruction to a grader or like a grade."""
    return any(_SIGNS.search(text) for text in _texts(document))


def _texts(document: Document) -> Iterable[str]:
    yield from (document.request, document.answer, *document.claims, *(turn.text for turn in document.earlier))
    for call in document.observations:
        yield from (text for text in (call.tool, call.arguments, call.result, call.error) if text)
