"""Reference answers: from a file to the transcripts of the runs whose requests they answer, or a sentence that says what is wrong."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from ruamel.yaml import YAML
from traps import AGENT, CHAT, span

from collectors.dialects import read as read_span
from pipeline.config import references
from pipeline.config.grading import graders_of, grading_of
from pipeline.config.load import Loaded, load, read
from pipeline.errors import ConfigurationError
from pipeline.judges.rubric_file import SHIPPED
from pipeline.model.rubric import ReferenceUse
from pipeline.model.time import DAY
from pipeline.stages.assemble import TraceState
from pipeline.stages.close import AssembleSettings
from pipeline.stages.turn import Assembly, turn

ASKED, RIGHT = "Can I still return B-2040?", "Yes, until April 1."


def lines(*pairs: tuple[str, str]) -> str:
    return "".join(msgspec.json.encode({"request": one, "answer": other}).decode() + "\n" for one, other in pairs)


def settings(folder: Path, use: str | None, file: str | None = None, text: str = "") -> Loaded:
    """A configuration whose rubric is ``support`` with one dimension that reads references."""
    rubric = YAML(typ="safe").load((SHIPPED / "support.yaml").read_text())
    rubric["name"] = "mine"
    if use is not None:
        rubric["dimensions"][1]["reference"] = use
    YAML(typ="safe").dump(rubric, folder / "mine.yaml")
    entry: dict[str, Any] = {"rubric": "mine.yaml"}
    if file is not None:
        entry["references"] = file
        (folder / file).write_text(text, encoding="utf-8")
    judge = {"base_url": "http://127.0.0.1:1/v1", "model": "judge-1"}
    YAML(typ="safe").dump({"judge": judge, "agents": {"default": entry}}, folder / "tracegrade.yaml")
    return read(folder / "tracegrade.yaml", {})


def transcript(folder: Path, request: str) -> dict[str, Any]:
    """What a judge is shown of a run that was asked this."""
    head = span(1, 0, AGENT, lasts=9)
    content = {
        "gen_ai.input.messages": _message("user", request),
        "gen_ai.output.messages": _message("assistant", "Until April 1."),
    }
    state = TraceState("default", head.trace_id)
    state.add([head, span(2, 1, CHAT | content)])
    grading = grading_of(load(folder / "tracegrade.yaml", {}))
    version = turn(
        state, state.last_received_ns + DAY, 0, Assembly(read=read_span, settings=AssembleSettings(), grading_of=grading)
    ).version
    assert version is not None
    (run,) = version.runs
    assert run.transcript is not None
    body: dict[str, Any] = msgspec.json.decode(run.transcript.body)
    assert body["request"] == request
    return body


def _message(role: str, text: str) -> str:
    return msgspec.json.encode([{"role": role, "parts": [{"type": "text", "content": text}]}]).decode()


def test_a_run_has_the_reference_of_its_request_whatever_its_case_and_spaces(tmp_path: Path) -> None:
    assert settings(tmp_path, "used", "right.jsonl", lines((ASKED, RIGHT))).mistakes == ()
    assert transcript(tmp_path, f"  {ASKED.upper()} \n")["reference"] == RIGHT
    assert "reference" not in transcript(tmp_path, "Can I still return B-2041?")


def test_the_rubric_says_what_reads_it(tmp_path: Path) -> None:
    loaded = settings(tmp_path, "required", "right.jsonl", lines((ASKED, RIGHT)))
    assert loaded.settings is not None
    rubric = graders_of(loaded.settings)["default"].grading.rubric
    assert rubric is not None
    assert [one.reference for one in rubric.dimensions] == [
        msgspec.UNSET,
        ReferenceUse.REQUIRED,
        *[msgspec.UNSET] * 3,
    ]
    assert msgspec.json.decode(rubric.canonical, type=type(rubric)) == rubric


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"request": "a"}\n', "right.jsonl:1: answer: Field required; write "),
        ('\n{"request": "a", "answer": ""}\n', "right.jsonl:2: answer: "),
        ('{"request": "a", "answer": "b", "score": 1}\n', "right.jsonl:1: score: "),
        ("no json\n", "right.jsonl:1: Invalid JSON"),
        (lines(("Ask  this", "one"), ("ask this", "two")), "right.jsonl:2: this request has another answer further up; keep one"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_by_line(tmp_path: Path, text: str, said: str) -> None:
    loaded = settings(tmp_path, "used", "right.jsonl", text)
    (mistake,) = loaded.mistakes
    assert mistake.where == "agents.default.references"
    assert said in mistake.what
    with pytest.raises(ConfigurationError, match=r"right\.jsonl:"):
        references.load(tmp_path / "right.jsonl")


def test_one_answer_twice_is_no_mistake(tmp_path: Path) -> None:
    assert settings(tmp_path, "used", "right.jsonl", lines((ASKED, RIGHT), (ASKED.lower(), RIGHT))).mistakes == ()


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    settings(tmp_path, "used", "right.jsonl", lines((ASKED, RIGHT)))
    (tmp_path / "right.jsonl").unlink()
    (mistake,) = read(tmp_path / "tracegrade.yaml", {}).mistakes
    assert "cannot be read" in mistake.what


def test_references_that_nobody_reads_are_a_mistake(tmp_path: Path) -> None:
    (mistake,) = settings(tmp_path, None, "right.jsonl", lines((ASKED, RIGHT))).mistakes
    assert (mistake.where, "no judged dimension reads them" in mistake.what) == ("agents.default.references", True)


def test_who_requires_references_and_has_none_is_warned(tmp_path: Path) -> None:
    told = [one for one in settings(tmp_path, "required").warnings if "reference" in one.what]
    assert [(one.where, "grades completeness against reference answers" in one.what) for one in told] == [
        ("agents.default.rubric", True)
    ]
    assert not [one for one in settings(tmp_path, "used").warnings if "reference" in one.what]


def test_what_no_judge_measures_reads_none(tmp_path: Path) -> None:
    rubric = YAML(typ="safe").load((SHIPPED / "support.yaml").read_text())
    rubric["dimensions"][1] |= {"reference": "used", "measured_by": "human"}
    YAML(typ="safe").dump(rubric, tmp_path / "mine.yaml")
    (tmp_path / "tracegrade.yaml").write_text("agents: {default: {rubric: mine.yaml}}\n", encoding="utf-8")
    (mistake,) = read(tmp_path / "tracegrade.yaml", {}).mistakes
    assert "dimensions[1].reference: is what a judge is shown, and no judge measures this; remove it" in mistake.what
