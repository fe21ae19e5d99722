"""What leaves for a judge, and what never does: the key, projects that opted out, secrets in transcripts, hosts that nobody allowed."""

from pathlib import Path
from typing import Any

import pytest
import structlog
from builders import T0
from judge_builders import SUPPORT, Bench, a_request_to_judge, a_verdict, refunded
from pydantic import ValidationError
from run_builders import a_call

from pipeline.apps.judges import redacting
from pipeline.config.grading import grading_of
from pipeline.config.redaction import RedactionSettings
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.errors import ConfigurationError, TemporaryError
from pipeline.judges.endpoint import Endpoint
from pipeline.judges.judge import Judge
from pipeline.judges.model import PausedError
from pipeline.judges.openai import OpenAIModel
from pipeline.judges.purse import Purse
from pipeline.judges.scripted import MODEL, Canned, ScriptedJudge, failing
from pipeline.judges.settings import JudgeSettings
from pipeline.judges.votes import VotesInMemory
from pipeline.model.result import Outcome
from pipeline.model.time import SECOND
from pipeline.stages.grade import grade

KEY = "sk-secret-4711-abcdefgh"
URL = "https://judge.example.org/v1"


KINDS: dict[str, Any] = {
    "in a verdict": lambda asked: Canned(text=a_verdict(4, f"Your key is {asked.authorization}.", "I refunded")),
    "in no verdict": lambda asked: Canned(text=f"no: {asked.authorization}"),
    "in a page": lambda asked: Canned(body=f"<html>{asked.authorization}</html>", content_type="text/html"),
    **{
        f"with {status}": lambda asked, status=status: failing(
            status, message=f"no, {asked.authorization}", code=asked.authorization
        )
        for status in (400, 401, 402, 403, 404, 429, 500)
    },
}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_key_that_an_endpoint_repeats_is_in_no_row_no_error_no_judgment_and_no_log(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    votes, errors, judgments = VotesInMemory(), [], []
    with structlog.testing.capture_logs() as logs:
        async with ScriptedJudge(KINDS[kind]) as server:
            settings = JudgeSettings.model_validate({"base_url": server.url, "model": MODEL, "timeout": 5 * SECOND})
            async with OpenAIModel(settings, {"OPENAI_API_KEY": KEY}) as model:
                endpoint = Endpoint(model, settings, lambda: T0)
                purse = Purse(settings.budget, votes, lambda: T0)
                judge = Judge(SUPPORT, settings, {settings.model: endpoint}, purse, votes, lambda: T0)
                request = a_request_to_judge(refunded(), judge)
                for dimension in ("tone", "correctness"):
                    try:
                        judgments.append(await judge.judge(request, dimension, judge.contracts[dimension].hash))
                    except (TemporaryError, ConfigurationError) as error:
                        errors.append(f"{error!r} {error}")
                held = endpoint.circuit
        assert server.asked[0].authorization == f"Bearer {KEY}", "it was sent where it belongs"
    printed = "".join(capsys.readouterr())
    assert votes.rows
    assert judgments or errors
    assert KEY not in repr([votes.rows, errors, judgments, logs, held, settings]) + printed


async def test_a_key_is_read_from_a_file_and_another_one_is_taken_up_without_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("old-key-000000\n")
    async with Bench(api_key_file=file) as bench:
        bench.server._key = "new-key-111111"
        with pytest.raises(PausedError, match=str(file)) as refused:
            await bench.judged("tone")
        assert "old-key-000000" not in str(refused.value)
        file.write_text("new-key-111111\n")
        bench.clock.advance_to(T0 + 60 * SECOND)
        assert (await bench.judged("tone")).score is not None
    assert [asked.authorization for asked in bench.server.asked] == ["Bearer old-key-000000", "Bearer new-key-111111"]


async def test_a_key_file_that_is_not_there_pauses_and_is_told(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("a-key-22222222")
    async with Bench(api_key_file=file) as bench:
        file.unlink()
        with pytest.raises(PausedError, match=r"judge\.api_key_file: .* cannot be read"):
            await bench.judged("tone")
        assert bench.server.asked == []


async def test_nothing_of_a_project_that_opted_out_is_shown_to_a_judge() -> None:
    async with Bench(opted_out=("default",)) as bench:
        with pytest.raises(ConfigurationError, match="opted out"):
            await bench.judged("tone")
        assert (bench.server.asked, bench.votes.rows) == ([], [])


def test_judged_dimensions_of_a_project_that_opted_out_say_so_and_ask_for_nothing() -> None:
    settings = TracegradeSettings.model_validate({"judge": {"base_url": URL, "model": "m", "opted_out": ["default"]}})
    grading = grading_of(settings)
    graded = grade(refunded(), 3, [], [], None, grading("default", "support"), T0, T0)
    judged = {result.dimension: result for result in graded.version.results if result.kind == "judged"}
    assert graded.request is None
    assert len(judged) == 5
    assert {(one.outcome, one.value, one.reason) for one in judged.values()} == {
        (Outcome.INSUFFICIENT_EVIDENCE, None, "opted_out")
    }
    assert (graded.version.run_class, graded.version.class_reason) == ("unresolved", "opted_out")
    asked = grade(refunded(), 3, [], [], None, grading("another", "support"), T0, T0)
    assert asked.request is not None, "other projects are judged"


@pytest.mark.parametrize(
    ("url", "hosts", "allowed"),
    [
        (URL, [], True),
        (URL, ["judge.example.org"], True),
        (URL, ["api.openai.com", "judge.example.org"], True),
        (URL, ["example.org"], False),
        ("https://judge.example.org.evil.net/v1", ["judge.example.org"], False),
        ("https://JUDGE.example.org/v1", ["judge.example.org"], True),
    ],
)
def test_transcripts_go_to_allowed_hosts_only(url: str, hosts: list[str], allowed: bool) -> None:
    written = {"base_url": url, "model": "m", "allowed_hosts": hosts}
    if allowed:
        assert JudgeSettings.model_validate(written).base_url == url
        return
    with pytest.raises(ValidationError, match="correct one of them"):
        JudgeSettings.model_validate(written)


async def test_what_was_stored_before_a_rule_was_written_is_redacted_before_the_prompt() -> None:
    secret = "AKIA" + "IOSFODNN7EXAMPLE"
    run = refunded(
        request="Please refund order A-1001, write to jane.doe@example.org.",
        calls=(a_call("look_up", {"note": "badge B-774411"}, f'{{"key": "{secret}", "amount": 42.5}}'),),
    )
    settings = TracegradeSettings.model_validate({"redaction": {"rules": [{"name": "badge", "pattern": "B-\\d{6}"}]}})
    async with Bench() as bench:
        judge = bench.a_judge(redact=redacting(settings))
        judgment = await bench.judged_by(judge, "tone", run)
        sent = str(bench.server.asked[0].body)
    assert judgment.score is not None
    for hidden in (secret, "jane.doe@example.org", "B-774411"):
        assert hidden in a_request_to_judge(run, judge).transcript
        assert hidden not in sent
    assert "[redacted:badge]" in sent
    assert "42.5" in sent, "the rest stays"


def test_a_transcript_without_secrets_is_shown_as_it_is_stored() -> None:
    text = '{"system":"","request":"Please refund order A-1001.","answer":"é 1.50"}'
    assert redacting(TracegradeSettings())(text) is text
    assert redacting(TracegradeSettings(redaction=RedactionSettings(off=True)))(text) is text
