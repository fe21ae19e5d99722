"""From settings to how each agent's runs are graded, and under which contracts."""

from decimal import Decimal
from pathlib import Path

import pytest
from traps import AGENT, CHAT, TOOL, span

from collectors.dialects import read
from pipeline.config import rubrics
from pipeline.config.grading import contracts, deciding, deciding_contracts, graders_of, grading_of
from pipeline.config.load import load
from pipeline.config.tracegrade import AgentSettings, TracegradeSettings
from pipeline.errors import ConfigurationError
from pipeline.judges import rubric_file
from pipeline.judges.contract import judge_contract
from pipeline.judges.settings import JudgeSettings
from pipeline.model.result import Kind
from pipeline.model.time import DAY, MINUTE
from pipeline.scorers import ChecksSettings
from pipeline.scorers.answer import AnswerSettings
from pipeline.scorers.policies import PolicySettings
from pipeline.scorers.policy_rules import ForbidSettings
from pipeline.scorers.prices import PricesSettings, PriceTable
from pipeline.stages.assemble import TraceState
from pipeline.stages.close import AssembleSettings
from pipeline.stages.grade import Grading
from pipeline.stages.sample import SampleSettings
from pipeline.stages.turn import Assembly, turn

JUDGE = JudgeSettings(base_url="http://127.0.0.1:1/v1", model="judge-1")
SUPPORT = ("correctness", "completeness", "policy_and_safety", "format", "tone")
MEASURED = (
    "answer_present",
    "tool_errors",
    "recovery_errors",
    "loops",
    "stalls",
    "unknown_tools",
    "invalid_arguments",
    "argument_hallucination_rate",
    "efficiency",
    "hand_offs",
)


def entry(**agent: object) -> TracegradeSettings:
    """Return settings with one entry, for every agent."""
    return TracegradeSettings(judge=JUDGE, agents={"default": AgentSettings.model_validate(agent)})


def grading(settings: TracegradeSettings, agent: str = "any") -> Grading:
    return grading_of(settings)("default", agent)


def calibrated(folder: Path, settings: TracegradeSettings, **authorities: str) -> TracegradeSettings:
    """Return the settings with a calibration that gives these dimensions these authorities."""
    hashes = {one.dimension: one.hash for one in graders_of(settings)["default"].judged}
    lines = [f'- {{contract: "{hashes[name]}", dimension: {name}, authority: {one}}}\n' for name, one in authorities.items()]
    (folder / "calibration.yaml").write_text("".join(lines), encoding="utf-8")
    judge = settings.judge.model_copy(update={"calibration": folder / "calibration.yaml"})
    return settings.model_copy(update={"judge": judge})


def test_without_any_configuration_everything_is_measured_and_support_is_asked_for() -> None:
    found = grading(TracegradeSettings())
    assert tuple(check.name for check in found.checks) == MEASURED
    assert tuple(one.name for one in found.judged) == SUPPORT
    assert found.rubric == rubrics.load("support")
    assert not found.judge_configured
    assert found.deadline_ns == 15 * MINUTE
    assert found.sampling == SampleSettings()


def test_a_judged_dimension_carries_the_contract_of_its_judge() -> None:
    rubric = rubrics.load("support")
    found = grading(TracegradeSettings(judge=JUDGE))
    assert {one.name: one.contract for one in found.judged} == {
        name: judge_contract(rubric, name, JUDGE).hash for name in SUPPORT
    }
    assert found.judge_configured


def test_every_agent_has_its_own_entry_or_the_default_one() -> None:
    settings = TracegradeSettings(
        agents={
            "default": AgentSettings(sampling=SampleSettings(rate=0.25)),
            "batch": AgentSettings(rubric=None),
        }
    )
    of = grading_of(settings)
    assert of("p", "batch").judged == ()
    assert of("p", "batch").sampling.rate == 1.0, "an entry is complete: it takes nothing from the default one"
    assert of("p", "anybody").sampling.rate == 0.25
    assert of("p", "anybody") is of("other", "somebody"), "however many agents there are, there are as many gradings as entries"


def test_what_nobody_has_compared_with_people_decides_nothing_unless_the_user_says_so() -> None:
    assert deciding(JudgeSettings()) == {"assisted", "alone"}
    assert deciding(JudgeSettings(uncalibrated="decide")) == {"assisted", "alone", "uncalibrated"}


def test_authority_comes_from_the_calibration_of_exactly_this_contract(tmp_path: Path) -> None:
    settings = calibrated(tmp_path, TracegradeSettings(judge=JUDGE), tone="alone", format="frozen")
    assert {one.name: one.authority for one in grading(settings).judged} == {
        "correctness": "uncalibrated",
        "completeness": "uncalibrated",
        "policy_and_safety": "uncalibrated",
        "format": "frozen",
        "tone": "alone",
    }
    another_model = settings.model_copy(update={"judge": settings.judge.model_copy(update={"model": "judge-2"})})
    assert {one.authority for one in grading(another_model).judged} == {"uncalibrated"}


def test_gates_read_the_contracts_whose_scores_may_decide_and_no_other(tmp_path: Path) -> None:
    settings = calibrated(tmp_path, TracegradeSettings(judge=JUDGE), tone="alone", format="frozen")
    names = {one.contract: one.name for one in grading(settings).judged}
    assert {names[one] for one in deciding_contracts(settings)} == {"tone"}
    decide = settings.model_copy(update={"judge": settings.judge.model_copy(update={"uncalibrated": "decide"})})
    assert {names[one] for one in deciding_contracts(decide)} == set(SUPPORT) - {"format"}


class TestScorecardContract:
    BASE = grading(entry()).contract

    @pytest.mark.parametrize(
        "changed",
        [
            pytest.param(entry(rubric=None), id="no rubric"),
            pytest.param(entry(checks=ChecksSettings(answer_present=AnswerSettings(gate=False))), id="a check gates no more"),
            pytest.param(
                entry(checks=ChecksSettings(policies=(PolicySettings(name="no_x", forbid=ForbidSettings(tool="x")),))),
                id="one more check gates",
            ),
            pytest.param(entry().model_copy(update={"judge": JUDGE.model_copy(update={"model": "judge-2"})}), id="another judge"),
            pytest.param(
                entry().model_copy(update={"judge": JUDGE.model_copy(update={"uncalibrated": "decide"})}), id="others decide"
            ),
        ],
    )
    def test_it_changes_with_what_can_change_a_verdict(self, changed: TracegradeSettings) -> None:
        assert grading(changed).contract != self.BASE

    @pytest.mark.parametrize(
        "changed",
        [
            pytest.param(entry(sampling=SampleSettings(rate=0.5)), id="fewer runs are judged"),
            pytest.param(entry(checks=ChecksSettings(alternatives={"a": ("b",)})), id="a measurement that does not gate"),
            pytest.param(
                entry().model_copy(update={"judge": JUDGE.model_copy(update={"concurrency": 1})}), id="how fast it is asked"
            ),
        ],
    )
    def test_and_with_nothing_else(self, changed: TracegradeSettings) -> None:
        assert grading(changed).contract == self.BASE

    def test_it_changes_when_a_judge_earns_to_decide(self, tmp_path: Path) -> None:
        frozen = grading(calibrated(tmp_path, entry(), tone="frozen")).contract
        assisted = grading(calibrated(tmp_path, entry(), tone="assisted")).contract
        alone = grading(calibrated(tmp_path, entry(), tone="alone")).contract
        assert frozen == self.BASE, "it decides as little as before"
        assert assisted == alone != self.BASE


def test_the_bodies_of_all_contracts_can_be_stored_under_their_hashes() -> None:
    settings = TracegradeSettings(judge=JUDGE, agents={"a": AgentSettings(), "b": AgentSettings(rubric=None)})
    found = {one.hash: one for one in contracts(settings)}
    used = {one.contract for graders in graders_of(settings).values() for one in graders.grading.judged}
    used |= {graders.grading.contract for graders in graders_of(settings).values()}
    used |= {check.contract for graders in graders_of(settings).values() for check in graders.grading.checks}
    assert set(found) == used
    assert {one.kind for one in found.values()} == {Kind.CODE, Kind.JUDGED, Kind.VERDICT}
    assert len(found) == len(contracts(settings))


def test_a_clash_is_told_with_its_agent_where_settings_come_from_code() -> None:
    clash = PolicySettings(name="tone", forbid=ForbidSettings(tool="x"))
    with pytest.raises(ConfigurationError, match=r"agents\.default\.checks: tone is a dimension of the rubric"):
        grading_of(entry(checks=ChecksSettings(policies=(clash,))))


class TestFiles:
    def test_paths_in_a_file_start_at_its_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        here = tmp_path / "etc"
        here.mkdir()
        shipped = (rubric_file.SHIPPED / "support.yaml").read_text(encoding="utf-8")
        (here / "mine.yaml").write_text(shipped.replace("name: support", "name: mine"), encoding="utf-8")
        (here / "calibration.yaml").write_text("[]\n", encoding="utf-8")
        (here / "tracegrade.yaml").write_text(
            "store: {path: data}\nagents: {a: {rubric: mine.yaml}, b: {rubric: support}}\njudge: {calibration: ./calibration.yaml}\n",
            encoding="utf-8",
        )
        monkeypatch.chdir(tmp_path)
        settings = load(Path("etc/tracegrade.yaml"), {})
        assert settings.store.path == Path("etc/data")
        assert settings.judge.calibration == Path("etc/calibration.yaml")
        assert settings.agents["b"].rubric == "support"
        assert grading(settings, "a").rubric is not None
        assert graders_of(settings)["a"].grading.rubric == rubrics.load(here / "mine.yaml")

    def test_absolute_paths_stay(self, tmp_path: Path) -> None:
        (tmp_path / "t.yaml").write_text(f"store: {{path: {tmp_path / 'x'}}}\n", encoding="utf-8")
        assert load(tmp_path / "t.yaml", {}).store.path == tmp_path / "x"

    def test_without_a_file_there_are_the_defaults(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        assert load(None, {}) == TracegradeSettings()

    def test_the_file_in_the_working_directory_is_found(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        Path("tracegrade.yaml").write_text("project: acme\n", encoding="utf-8")
        settings = load(None, {})
        assert (settings.project, settings.receiver.project, settings.store.path) == ("acme", "acme", Path("tracegrade-data"))

    @pytest.mark.parametrize("text", ["", "# nothing yet\n", "---\n", "{}\n"])
    def test_an_empty_file_means_the_defaults(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "t.yaml").write_text(text, encoding="utf-8")
        assert load(tmp_path / "t.yaml", {}) == TracegradeSettings()


@pytest.mark.parametrize(
    ("attribute", "kind"),
    [("", "desk"), ("app.task", "refund"), ("app.team", "returns"), ("app.step", "1"), ("app.nothing", "desk")],
)
def test_a_runs_kind_of_task_is_the_configured_attribute_else_the_agent(attribute: str, kind: str) -> None:
    settings = entry(checks={"efficiency": {"task_kind": attribute, "baseline": {"refund": 0, "desk": 9}}})
    head = span(1, 0, AGENT | {"app.task": "refund"}, lasts=9, resource={"app.team": "returns"})
    state = TraceState("default", head.trace_id)
    state.add([head, span(2, 1, TOOL | {"app.task": "question", "app.step": 1})])
    assembly = Assembly(read=read, settings=AssembleSettings(), grading_of=grading_of(settings))
    version = turn(state, state.last_received_ns + DAY, 0, assembly).version
    assert version is not None
    (run,) = version.runs
    assert run.run.task_kind == kind
    (result,) = (one for one in run.results if one.dimension == "efficiency")
    assert (result.value, result.outcome) == (1.0, "fail" if kind == "refund" else "pass")


def test_a_run_costs_what_the_configured_prices_make_of_it_and_says_by_which() -> None:
    settings = entry(checks={"limits": {"cost_usd": 0.003}}).model_copy(
        update={"prices": PricesSettings.model_validate({"models": {"m": {"input": 0.75, "output": 2.55}}})}
    )
    tokens = {"gen_ai.usage.input_tokens": 3000, "gen_ai.usage.output_tokens": 300}
    state = TraceState("default", "ab" * 16)
    state.add([span(1, 0, AGENT, lasts=9), span(2, 1, CHAT | tokens)])
    assembly = Assembly(read=read, settings=AssembleSettings(), grading_of=grading_of(settings))
    version = turn(state, state.last_received_ns + DAY, 0, assembly).version
    assert version is not None
    (run,) = version.runs
    assert (run.cost.usd, run.cost.unknown, run.cost.prices) == (Decimal("0.003015"), "", PriceTable(settings.prices).version)
    (result,) = (one for one in run.results if one.dimension == "cost_usd")
    assert (result.outcome, result.reason) == ("fail", "0.003015 is over the limit of 0.003")
    terms = {one.hash: one for one in contracts(settings)}[result.contract]
    assert terms.check_definition["prices"] == run.cost.prices
