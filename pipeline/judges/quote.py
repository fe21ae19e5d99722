"""Whether the words that a judge says decided are really there."""

import unicodedata
from collections.abc import Iterable
from typing import Final

import msgspec

from pipeline.judges.fence import neutralised
from pipeline.judges.transcript import Document

QUOTE_VERSION: Final = "quote-2"
"""Part of the contract, as the evidence schema: the sections, what the fence makes inert, the folding and the least length below."""

LEAST: Final = 2
"""Letters and digits that a quote must have: with fewer it stands in every text and proves nothing."""

_QUOTES: Final = str.maketrans(dict.fromkeys("‘’‚‛′`´", "'") | dict.fromkeys("“”„‟«»″", '"'))


def fold(text: str) -> str:
    """Return the text in NFC, with runs of white space as one space and all kinds of quotation marks as straight ones."""
    return " ".join(unicodedata.normalize("NFC", neutralised(text)).translate(_QUOTES).split())


def found(quote: str, document: Document, *, observation_only: bool, reference: bool = False) -> bool:
    """Whether the quote stands in one of the texts that the judge was given, after folding both (spec section 6).

    With ``observation_only`` it must stand in what the agent was given and did not write: what tools returned, or its
    instructions. Arguments of calls, claims on the way and the reply are the agent's own words, the request is the user's.
    The reference answer is nothing of the run: it counts only with ``reference``, for what the run lacks.
    """
    wanted = fold(quote).strip(" \"'")
    if sum(character.isalnum() for character in wanted) < LEAST:
        return False
    texts = _given(document) if observation_only else (*_given(document), *_said(document))
    beside = (document.reference,) if reference and document.reference is not msgspec.UNSET else ()
    return any(wanted in fold(text) for text in (*texts, *beside))


def _given(document: Document) -> Iterable[str]:
    yield document.system
    for call in document.observations:
        yield from (text for text in (call.result, call.error) if text is not None)


def _said(document: Document) -> Iterable[str]:
    yield document.request
    yield document.answer
    yield from document.claims
    yield from (turn.text for turn in document.earlier)
    for call in document.observations:
        yield call.tool
        yield call.arguments or ""
