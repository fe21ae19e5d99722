"""``tracegrade judge try``: each vote with the model that gave it, and what the judge's word is worth there."""

from pathlib import Path
from typing import Any

from judge_builders import SUPPORT, a_verdict, refunded

from pipeline.apps.judge_commands import trial_lines
from pipeline.apps.trial import trial
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.judges.rubric_file import SHIPPED
from pipeline.judges.scripted import MODEL, Canned, ScriptedJudge
from pipeline.judges.transcript import render

LLAMA, CLAUDE = "llama-3.3-70b", "claude-haiku-4-5"
FINE = Canned(text=a_verdict(4, "Fine.", "I refunded"))


def a_detail(*models: str) -> dict[str, Any]:
    """What a store tells of a run that can be judged."""
    run = refunded()
    transcript = render(run, 24_000)
    line = {"cohort": {"agent": "support"}, "trace_id": run.trace_id, "run_id": run.run_id}
    said = {"transcript": transcript.body, "transcript_hash": transcript.hash}
    return {"line": line, "version": 8, "models": list(models), **said}


def settings(url: str, other: str, folder: Path, **judge: Any) -> TracegradeSettings:
    text = (SHIPPED / "support.yaml").read_text(encoding="utf-8")
    path = folder / "mine.yaml"
    path.write_text(text.replace("  - name: tone\n", f"  - name: tone\n    panel: {{models: [{MODEL}, {LLAMA}], rule: veto}}\n"))
    further = {LLAMA: {"base_url": other}, CLAUDE: {"base_url": other}}
    given = {"base_url": url, "model": MODEL, "models": further, **judge}
    return TracegradeSettings.model_validate({"judge": given, "agents": {"default": {"rubric": path}}})


async def test_a_panel_is_shown_vote_by_vote(tmp_path: Path) -> None:
    low = Canned(text=a_verdict(2, "Curt.", "I refunded"))
    async with ScriptedJudge([FINE]) as first, ScriptedJudge([low], formats=frozenset()) as second:
        made = await trial(settings(first.url, second.url, tmp_path), a_detail("gpt-4o"), "tone", {})
        lines = list(trial_lines(made))
    assert [(said.vote.model, said.vote.score) for said in made.calls] == [(MODEL, 4.0), (LLAMA, 2.0)]
    assert any(line.startswith(f"{MODEL} at {first.url}: it takes a JSON Schema for the reply") for line in lines)
    assert any(line.startswith(f"{LLAMA} at {second.url}: it takes no form for the reply") for line in lines)
    assert f"--- reply 1 of 2: vote 1, {MODEL}" in lines
    assert f"--- reply 2 of 2: vote 2, {LLAMA}" in lines
    assert "=== fail, score 2: Curt." in lines
    assert "    the judge is uncalibrated here: its scores are shown and decide nothing" in lines
    assert (made.authority, made.counts) == ("uncalibrated", False)


async def test_it_asks_whom_production_would_ask_for_this_agent_and_says_what_its_word_is_worth(tmp_path: Path) -> None:
    async with ScriptedJudge() as first, ScriptedJudge(lambda _: FINE) as second:
        given = settings(first.url, second.url, tmp_path, pairing={"openai": CLAUDE}, uncalibrated="decide")
        made = await trial(given, a_detail("gpt-4o"), "format", {})
        assert first.asked == []
    assert [said.vote.model for said in made.calls] == [CLAUDE]
    assert "    the judge is uncalibrated here: what it says counts" in list(trial_lines(made))
    assert SUPPORT.dimension("format").gate is None
