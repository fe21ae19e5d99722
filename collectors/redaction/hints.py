"""Hints: what is looked for first, in many texts at once, and found wherever there may be something to replace."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, Final

from collectors.redaction.allowance import SEEN, Allowance
from pipeline.patterns import AnyOf

_SHORT: Final = 512
"""Bytes of a text in which it takes longer to ask twice."""


class Hints:
    """What is looked for first: a pass for each family of patterns, and only until something is found.

    In one pass for all of them the automaton would need a state for each pair of counts, of digits that may be a card's and of letters that
    may be a key's, and random text would be ten times as slow to look through.
    """

    def __init__(self, hints: Iterable[tuple[str, str | bytes]]) -> None:
        """Take each with its family."""
        of_family: defaultdict[str, dict[Any, None]] = defaultdict(dict)
        for family, hint in hints:
            of_family[family][hint] = None
        # The families with fewer patterns first: where they are found nobody asks for the others.
        self._of_family: Final = {
            name: AnyOf(list(some)) for name, some in sorted(of_family.items(), key=lambda one: len(one[1]))
        }
        self._families: Final = tuple(self._of_family.values())

    def are_in(self, raw: bytes) -> bool:
        """Whether one of them is found."""
        return any(family.where(raw) for family in self._families)

    def may_be_in(self, family: str, raw: bytes) -> bool:
        """Whether one of a family is found, where that is quicker to say than which."""
        return len(raw) < _SHORT or self._of_family[family].where(raw) is not None

    def whose_texts(self, texts: Sequence[str], allowance: Allowance) -> set[int]:
        """Return the places of the texts in which one may be found.

        Raises:
            SpentError: the allowance, overdrawn, does not suffice for so many.
        """
        found: set[int] = set()
        places: Sequence[int] = range(len(texts))
        raw = joined(texts)
        for family in self._families:
            here = _where(family, texts, raw, allowance) if texts else set()
            if here:
                found.update([places[at] for at in here])
                left = [at for at in range(len(texts)) if at not in here]
                texts, places = [texts[at] for at in left], [places[at] for at in left]
                raw = joined(texts)
        return found


def _where(family: AnyOf, texts: Sequence[str], raw: bytes, allowance: Allowance) -> set[int]:
    """Return in which texts, all of them joined, one of a family is found."""
    found: set[int] = set()
    begins: Sequence[int] = ()
    place = at = 0
    while (region := family.where(raw, at)) is not None:
        allowance.overdraw(SEEN)
        begins = begins or _begins(texts, len(raw))
        first = max(bisect_right(begins, region[0] + 1) - 1, place)
        place = max(bisect_right(begins, region[1] - 1), first + 1)
        found.update(range(first, place))
        if place >= len(begins):
            break
        # From the character before it on: what a pattern asks to stand before a word may be that.
        at = begins[place] - 1
    return found


def _begins(texts: Sequence[str], size: int) -> list[int]:
    """Return where each text begins in all of them as bytes, which have this size."""
    sizes = map(len, texts if size == sum(map(len, texts)) + len(texts) - 1 else map(bytes_of, texts))
    return list(accumulate((1 + size for size in sizes), initial=0))[:-1]


def joined(texts: Sequence[str]) -> bytes:
    """Return texts as bytes, with a line's end between them: to search a few together takes as long as to search one."""
    return bytes_of("\n".join(texts))


def bytes_of(text: str) -> bytes:
    """Return text as it is searched, with whatever is no Unicode in it."""
    return text.encode("utf-8", "surrogatepass")
