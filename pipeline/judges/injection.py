"""Signs that a run's content speaks to its grader: recorded with the judgment, and changing nothing in it."""

import re
from collections.abc import Iterable
from typing import Final

from pipeline.judges.lookalike import bare
from pipeline.judges.transcript import Document

_SIGNS: Final = re.compile(
    r"""
      \b(ignore|disregard|forget)\b .{0,40} \b(instructions?|criteria|rules?|rubric|model\ outputs|anchors)\b
    | \b(award|give|assign|return|output|grant)\b .{0,30} \b(full|maximum|max|highest|top|perfect)\b .{0,10} \b(marks?|scores?|points|grades?)\b
    | \b(always|only)\ (output|return|answer)\b .{0,20} \b(pass|5|10)\b
    | \b(grader|evaluator|judge)\s*: | \b(evaluation|grading)\ (is\ )?(finished|complete|over)\b | \bpassed\ human\ review\b
    | ["'](score|verdict|grade|better)\\?["']\s*:
    | \[\[[AB]\]\] | (?-i:\bGRADE:\ ?[A-F]\b)
    | </?(system|candidate|instructions?)> | <\| | \[/?(inst|system_prompt|tool_results|available_tools)\] | <(start|end)_of_turn> | =\s*(begin|end)\s+data
    | 满分 | 最高分
    """,
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)


def suspected(document: Document) -> bool:
    """Whether anything in the run reads like an instruction to a grader or like a grade."""
    # In arguments, which are JSON, a line ends in a letter that would be taken for one of the next word.
    return any(_SIGNS.search(bare(text).replace("\\n", "\n")) for text in _texts(document))


def _texts(document: Document) -> Iterable[str]:
    yield from (document.system, document.request, document.answer, *document.claims, *(turn.text for turn in document.earlier))
    for call in document.observations:
        yield from (text for text in (call.tool, call.arguments, call.result, call.error) if text)
