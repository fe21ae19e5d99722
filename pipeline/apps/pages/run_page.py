"""The page of a run: what its template is given."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from pipeline.apps.pages.excerpt import excerpt
from pipeline.apps.pages.render import page
from pipeline.apps.pages.run_view import TEXT, run_view
from pipeline.judges import transcript
from pipeline.judges.votes import Vote
from pipeline.model.evidence import Evidence
from pipeline.model.result import Judgment
from pipeline.scorers.prices import PriceTable
from pipeline.stages.outline import Entry
from sinks.clickhouse.run_detail import RunDetail
from sinks.clickhouse.run_history import RunHistory
from sinks.clickhouse.text import readable

PAGE_TEXT: Final = 3 * TEXT
"""Characters of the request and of the answer."""


def run_page(
    project: str,
    latest: RunDetail,
    detail: RunDetail,
    history: RunHistory,
    entries: Sequence[Entry],
    reads: Sequence[Evidence],
    prices: PriceTable,
    steps_page: int,
    step: str,
    choice: str,
) -> str:
    """Return the page of a run in the version that ``detail`` and ``history`` are of; ``latest`` is the one that counts."""
    view = run_view(entries, reads, detail, history, prices, steps_page, step)
    quotes = {place.section: one.weighted.result.evidence for one in view.scores if (place := one.place) and place.section}
    shown = readable(transcript.read, detail.transcript, None) if detail.transcript else None
    return page(
        "run.html",
        project=project,
        by_choice=choice,
        latest=latest,
        detail=detail,
        line=detail.line,
        history=history,
        steps=view.steps,
        prices=prices.version,
        scores=view.scores,
        unexecuted=view.unexecuted,
        request=excerpt(detail.request, PAGE_TEXT, [quotes.get("request", "")]),
        answer=excerpt(detail.answer or "", PAGE_TEXT, [quotes.get("answer", "")]),
        transcript=shown,
        shortened=lambda text: excerpt(text or "", TEXT),
        judged=_judged(detail),
        reads=reads,
    )


class Judged(NamedTuple):
    """What a judge was asked about one dimension, and what it said.

    Each judgment with the authority of this version's score under its contract, empty where there is none, and with whether it is
    of the transcript that the run has now.
    """

    dimension: str
    judgments: tuple[tuple[Judgment, str, bool], ...]
    votes: tuple[Vote, ...]


def _judged(detail: RunDetail) -> list[Judged]:
    authorities = {(one.dimension, one.contract): one.authority for one in detail.results}
    names = sorted({one.dimension for one in detail.judgments} | {vote.key.dimension for vote in detail.votes})
    return [
        Judged(
            name,
            tuple(
                (one, authorities.get((name, one.contract), ""), one.transcript_hash == detail.transcript_hash)
                for one in detail.judgments
                if one.dimension == name
            ),
            tuple(vote for vote in detail.votes if vote.key.dimension == name),
        )
        for name in names
    ]
