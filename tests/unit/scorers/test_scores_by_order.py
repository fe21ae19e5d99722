"""The same spans in another order, some of them twice, are scored the same: every result of every recorded run, word by word."""

import random
from typing import Any

import pytest
from recordings import CORPORA, arrived, graded, recordings

from collectors.dialects import read
from pipeline.config.grading import grading_of
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.model.version import RunVersion
from pipeline.stages.close import AssembleSettings
from pipeline.stages.turn import Assembly

SEED = 20261130
CHECKS: dict[str, Any] = {
    "limits": {"steps": 20, "tool_calls": 3, "seconds": 10, "input_tokens": 1000, "output_tokens": 100},
    "policies": [
        {"name": "looks_first", "before": {"tool": "issue_refund", "needs": "lookup_order"}},
        {"name": "refunds_once", "at_most": {"tool": "issue_refund", "times": 1, "per": "order_id"}},
        {"name": "deletes_nothing", "forbid": {"tool": "delete_customer"}},
    ],
    "output": [
        {"name": "is_json", "json": "fenced"},
        {"name": "in_english", "language": "en"},
        {"name": "no_promises", "banned": ["guaranteed", "refunded"]},
        {"name": "keeps_secrets", "no_secret": True},
    ],
    "alternatives": {"lookup_order": ["search"]},
}
FOLDERS = sorted(path.name for path in CORPORA.iterdir() if path.is_dir())


def assembly() -> Assembly:
    settings = TracegradeSettings.model_validate({"agents": {"default": {"checks": CHECKS}}})
    return Assembly(read=read, settings=AssembleSettings(), grading_of=grading_of(settings))


def said(runs: list[RunVersion]) -> list[tuple[Any, ...]]:
    return [(one.run.run_id, one.run_class, one.verdict, one.failing, one.transcript, *one.results) for one in runs]


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_order_of_arrival_changes_no_score(folder: str) -> None:
    using, chance, results = assembly(), random.Random(SEED), 0
    for path in recordings(folder):
        records = arrived(path)
        expected = said(graded(records, using))
        for _ in range(2):
            again = chance.sample(records, len(records) // 2)
            shuffled = chance.sample([*records, *again], len(records) + len(again))
            assert said(graded(shuffled, using)) == expected, path
        results += sum(map(len, expected))
    assert results, "nothing of this folder was scored"
