"""Who judges whose runs: a pairing by family, chosen where the request is planned, so that both runtimes and the judge agree."""

from functools import cache
from pathlib import Path

import pytest
from builders import T0
from judge_builders import SUPPORT, a_request_to_judge, a_verdict, refunded
from run_builders import a_run

from pipeline.config.check import summary
from pipeline.config.grading import by_choice, contracts, deciding_contracts, grading_of
from pipeline.config.rubrics import load
from pipeline.config.tracegrade import AgentSettings, TracegradeSettings
from pipeline.errors import ConfigurationError
from pipeline.judges.contract import judge_contract
from pipeline.judges.endpoint import Endpoint
from pipeline.judges.family import family
from pipeline.judges.judge import Judge
from pipeline.judges.openai import OpenAIModel
from pipeline.judges.purse import Purse
from pipeline.judges.rubric_file import SHIPPED
from pipeline.judges.scripted import Canned, ScriptedJudge
from pipeline.judges.settings import JudgeSettings
from pipeline.judges.votes import VotesInMemory
from pipeline.model.contract import Contract
from pipeline.model.result import Kind
from pipeline.model.run import Run
from pipeline.stages.grade import Graded, Grading, grade

URL = "http://127.0.0.1:1/v1"
GPT, CLAUDE, LLAMA = "gpt-4.1", "claude-sonnet-4-5", "llama-3.3-70b"
PAIRING = {"openai": CLAUDE, "anthropic": GPT, "google": CLAUDE}


def settings(pairing: dict[str, str] | None = None, url: str = URL, **judge: object) -> TracegradeSettings:
    given = {"base_url": url, "model": LLAMA, "models": {GPT: {}, CLAUDE: {}}, "pairing": PAIRING if pairing is None else pairing}
    return TracegradeSettings(judge=JudgeSettings.model_validate({**given, **judge}))


def grading(given: TracegradeSettings) -> Grading:
    return grading_of(given)("default", "any")


def graded(run: Run, given: TracegradeSettings) -> Graded:
    return grade(run, 1, (), (), None, grading(given), T0, T0)


@cache
def composed(*, paired: bool = True) -> tuple[Grading, dict[str, Contract]]:
    """How runs are graded with the pairing, or without any, and the contracts behind the hashes in it."""
    given = settings(None if paired else {})
    return grading(given), {one.hash: one for one in contracts(given)}


def asked_of(models: tuple[str, ...], *, paired: bool = True) -> str:
    """The model whose contract the request for a run of these models names."""
    using, known = composed(paired=paired)
    request = grade(a_run(models=models), 1, (), (), None, using, T0, T0).request
    assert request is not None
    (model,) = {known[contract].model for _, contract in request.dimensions}
    return model


@pytest.mark.parametrize(
    ("models", "judge"),
    [
        ((), LLAMA),
        (("house-model",), LLAMA),
        (("mistral-large",), LLAMA),
        (("gpt-4o",), CLAUDE),
        (("gpt-4o", "o3", "house-model"), CLAUDE),
        (("claude-opus-4-1",), GPT),
        (("azure/gpt-4o", "gemini-2.5-pro"), CLAUDE),
        (("gemini-2.5-pro",), CLAUDE),
        # Of several families the judge is of none; where no pairing is, judge.model it is, and same_family says what it says.
        (("claude-opus-4-1", "gemini-2.5-pro"), GPT),
        (("claude-opus-4-1", "gpt-4o"), LLAMA),
    ],
)
def test_a_run_is_judged_by_the_model_that_is_paired_with_its_agents_family(models: tuple[str, ...], judge: str) -> None:
    assert asked_of(models) == judge
    assert family(judge) not in {family(model) for model in models}


def test_the_order_of_what_the_agent_used_changes_nothing() -> None:
    assert asked_of(("gemini-2.5-pro", "claude-opus-4-1")) == asked_of(("claude-opus-4-1", "gemini-2.5-pro"))


def test_without_a_pairing_one_model_judges_all() -> None:
    assert {asked_of((model,), paired=False) for model in ("gpt-4o", "claude-opus-4-1", "house-model")} == {LLAMA}


def test_its_results_and_its_verdict_carry_the_contracts_of_that_model() -> None:
    given = settings()
    version = graded(a_run(models=("gpt-4o",)), given).version
    judged = {one.dimension: one.contract for one in version.results if one.kind is Kind.JUDGED}
    paired = given.judge.of(CLAUDE)
    assert judged == {one.name: judge_contract(SUPPORT, one.name, paired).hash for one in SUPPORT.dimensions}
    (verdict,) = (one for one in version.results if one.dimension == "verdict")
    (terms,) = (one for one in contracts(given) if one.hash == verdict.contract)
    assert {name: contract for name, (contract, _) in terms.check_definition["judged"].items()} == judged
    plain = grading(settings({})).contract
    assert verdict.contract != plain == grading(given).contract, "whom a pairing concerns not has the contract that it had"


def test_every_contract_that_a_run_may_be_judged_under_is_known() -> None:
    given = settings(uncalibrated="decide")
    found = grading(given)
    models = {one.model for one in contracts(given) if one.kind == Kind.JUDGED}
    assert models == {GPT, CLAUDE, LLAMA}
    assert len(found.every_judged) == 3 * len(SUPPORT.dimensions)
    assert {one.contract for one in found.every_judged} == set(found.quality.judged), "a quality score reads all of them"
    assert deciding_contracts(given) == {one.contract for one in found.every_judged}
    assert deciding_contracts(settings()) == set()


def test_each_model_earns_its_own_authority(tmp_path: Path) -> None:
    given = settings()
    (contract,) = (one.contract for one in grading(given).paired_with(("gpt-4o",)).judged if one.name == "tone")
    (tmp_path / "earned.yaml").write_text(f'- {{contract: "{contract}", dimension: tone, authority: alone}}\n')
    earned = settings(calibration=tmp_path / "earned.yaml")

    def authority(*models: str) -> str:
        results = graded(a_run(models=models), earned).version.results
        return next(one.authority for one in results if one.dimension == "tone")

    assert [authority("gpt-4o"), authority("claude-opus-4-1"), authority()] == ["alone", "uncalibrated", "uncalibrated"]


def test_a_panel_judges_whoever_the_agent_is_of(tmp_path: Path) -> None:
    text = (SHIPPED / "support.yaml").read_text(encoding="utf-8")
    path = tmp_path / "mine.yaml"
    path.write_text(f"{text}\npanel: {{models: [{GPT}, {CLAUDE}, {LLAMA}], rule: veto}}\n", encoding="utf-8")
    given = settings().model_copy(update={"agents": {"default": AgentSettings(rubric=path)}})
    found = grading(given)
    assert found.paired_with(("gpt-4o",)).judged == found.judged == found.every_judged
    (agent,) = summary(given).agents
    assert {one.judges for one in agent.dimensions if one.kind is Kind.JUDGED} == {(GPT, CLAUDE, LLAMA)}
    assert [panel.models for _, panel in load(path).panels] == [(GPT, CLAUDE, LLAMA)] * 5


def test_a_panel_that_nobody_could_ask_keeps_everything_from_starting(tmp_path: Path) -> None:
    text = (SHIPPED / "support.yaml").read_text(encoding="utf-8")
    path = tmp_path / "mine.yaml"
    path.write_text(f"{text}\npanel: {{models: [{GPT}, gemini-2.5-pro]}}\n", encoding="utf-8")
    agents = {"default": AgentSettings(rubric=path)}
    with pytest.raises(ConfigurationError, match=r"no endpoint is configured for gemini-2\.5-pro; write it under judge\.models"):
        grading_of(settings().model_copy(update={"agents": agents}))
    assert not grading(TracegradeSettings(agents=agents)).judge_configured, "without a judge nothing is asked"


def test_a_check_of_the_configuration_names_each_contract_and_for_whom_it_is() -> None:
    given = settings()
    lines = list(summary(given).lines())
    assert lines[0].endswith(f"judge {LLAMA} at {URL}, {GPT} at {URL}, {CLAUDE} at {URL}")
    tones = [line.split(maxsplit=3) for line in lines if line.startswith("  tone ")]
    assert [(one[2], one[3]) for one in tones] == [
        (judge_contract(SUPPORT, "tone", given.judge).hash, f"uncalibrated; by {LLAMA}"),
        (judge_contract(SUPPORT, "tone", given.judge.of(CLAUDE)).hash, f"uncalibrated; by {CLAUDE} for agents of openai, google"),
        (judge_contract(SUPPORT, "tone", given.judge.of(GPT)).hash, f"uncalibrated; by {GPT} for agents of anthropic"),
    ]


async def test_the_judge_asks_the_model_of_the_contract_over_http() -> None:
    reply = Canned(text=a_verdict(4, "Fine.", "I refunded"))
    async with ScriptedJudge(lambda _: reply) as first, ScriptedJudge(lambda _: reply) as second:
        further = {GPT: {}, CLAUDE: {"base_url": second.url}}
        given = settings(url=first.url, models=further)
        judge, votes = given.judge, VotesInMemory()
        async with (
            OpenAIModel(judge, {}) as llama,
            OpenAIModel(judge.of(CLAUDE), {}) as claude,
            OpenAIModel(judge.of(GPT), {}) as gpt,
        ):
            models = {LLAMA: llama, CLAUDE: claude, GPT: gpt}
            endpoints = {name: Endpoint(one, judge.of(name), lambda: T0) for name, one in models.items()}
            one = Judge(SUPPORT, judge, endpoints, Purse(judge.budget, votes, lambda: T0), votes, lambda: T0)
            request = a_request_to_judge(refunded(), one, models=("gpt-4o",))
            paired: dict[str, str] = {each.name: each.contract for each in grading(given).paired_with(request.models).judged}
            judgment = await one.judge(request, "tone", paired["tone"])
            plain = await one.judge(request, "tone", dict(request.dimensions)["tone"])
        assert [asked.body["model"] for asked in (*first.asked, *second.asked)] == [LLAMA, CLAUDE]
    assert (judgment.model, judgment.contract) == (CLAUDE, paired["tone"])
    assert {"agent_family:openai", "judge_family:anthropic"} <= set(judgment.flags)
    assert (plain.model, "same_family" in judgment.flags) == (LLAMA, False)


class TestByChoice:
    def test_pages_say_nothing_where_nothing_uncalibrated_decides(self) -> None:
        assert by_choice(settings()) == by_choice(TracegradeSettings()) == ""
        assert by_choice(TracegradeSettings(judge=JudgeSettings(uncalibrated="decide"))) == "", "nobody judges"

    def test_they_name_the_dimensions_where_something_does(self, tmp_path: Path) -> None:
        hashes = {one.name: one.contract for one in grading(settings({})).judged}
        entries = [
            f'- {{contract: "{one}", dimension: {name}, authority: alone}}' for name, one in hashes.items() if name != "tone"
        ]
        (tmp_path / "earned.yaml").write_text("\n".join(entries) + "\n")
        said = by_choice(settings({}, uncalibrated="decide", calibration=tmp_path / "earned.yaml"))
        assert said.endswith("decide here, by choice (judge.uncalibrated: decide): tone.")
        assert by_choice(settings(uncalibrated="decide")).endswith(
            ": correctness, completeness, policy_and_safety, format, tone."
        )


def test_a_pairing_changes_no_more_than_the_judge() -> None:
    given, _ = composed()
    assert given.paired_with(("gpt-4o",)).checks == given.checks
    assert given.paired_with(("gpt-4o",)).rubric == given.rubric
