"""What was cut because it was too large is read as far as it goes, and the run says so."""

from pathlib import Path

import msgspec
import pytest
from recordings import recordings, runs_of, spans_of

from collectors.dialects import read
from collectors.dialects.steps import TRUNCATED
from collectors.otlp.cutting import LEAST, cut_texts
from pipeline.model.span import TRUNCATED_FIELDS, Span
from pipeline.model.step import StepKind
from pipeline.scorers import ChecksSettings, checks

RECORDED = recordings()
CHECKS = checks(ChecksSettings())


def _cut(span: Span) -> Span:
    told: dict[str, None] = {}
    kept = cut_texts(
        {"attributes": span.attributes, "events": [{"attributes": one.attributes} for one in span.events]}, LEAST, told
    )
    events = tuple(
        msgspec.structs.replace(one, attributes=less["attributes"]) for one, less in zip(span.events, kept["events"], strict=True)
    )
    flag = {TRUNCATED_FIELDS: list(told)} if told else {}
    return msgspec.structs.replace(span, attributes=kept["attributes"] | flag, events=events)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.parent.name + "/" + path.stem)
def test_recorded_runs_are_graded_whatever_was_cut_of_them_and_say_so(path: Path) -> None:
    whole = spans_of(path)
    cut = [_cut(span) for span in whole]
    assert all(
        (TRUNCATED in read(span).flags) is (TRUNCATED_FIELDS in span.attributes or TRUNCATED in read(before).flags)
        for span, before in zip(cut, whole, strict=True)
        if read(span).kind is not StepKind.IGNORED
    )
    runs = runs_of(cut)
    assert [run.run_id for run in runs] == [run.run_id for run in runs_of(whole)]
    for run in runs:
        if any(TRUNCATED in step.flags for step in run.steps):
            assert TRUNCATED in run.flags
        for check in CHECKS:
            check.score(run)


def test_some_of_what_is_recorded_is_long_enough_to_be_cut() -> None:
    assert sum(TRUNCATED_FIELDS in _cut(span).attributes for path in RECORDED for span in spans_of(path)) > 20
