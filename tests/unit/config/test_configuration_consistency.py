"""Parts that do not fit together are mistakes; what a user should know is a warning. Both by line."""

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from pipeline.config.grading import graders_of
from pipeline.config.load import Loaded, load, read
from pipeline.config.mistake import Mistake
from pipeline.config.tracegrade import SHIPPED_RUBRICS
from pipeline.model.contract import Contract

Read = Callable[..., Loaded]


@pytest.fixture
def loaded(tmp_path: Path) -> Read:
    def write_and_read(text: str, environment: dict[str, str] | None = None) -> Loaded:
        (tmp_path / "tracegrade.yaml").write_text(dedent(text).lstrip("\n"), encoding="utf-8")
        return read(tmp_path / "tracegrade.yaml", environment or {})

    return write_and_read


EXAMPLES = ", ".join(
    f"{{kind: {kind}, score: {score}, evidence: seen, answer: said, why: so}}"
    for kind, score in (("clear_pass", 5), ("clear_failure", 1), ("borderline", 3))
)


def rubric(folder: Path, *dimensions: str, measured_by: str = "judge") -> str:
    """Write a rubric whose dimensions share the weight, and return its name in the folder."""
    weights = ["0.1"] * (len(dimensions) - 1) + [f"{1 - (len(dimensions) - 1) / 10:.1f}"]
    parts = [
        f'  - {{name: {name}, weight: "{weight}", measured_by: {measured_by}, anchors: {{1: bad, 5: good}}, requires: [the reply], '
        f"examples: [{EXAMPLES}]}}"
        for name, weight in zip(dimensions, weights, strict=True)
    ]
    head = 'name: mine\nversion: "1"\nscale: {lowest: 1, highest: 5}\nbar: 75\ndimensions:\n'
    (folder / "mine.yaml").write_text(head + "\n".join(parts) + "\n", encoding="utf-8")
    return "mine.yaml"


def only(found: tuple[Mistake, ...]) -> str:
    (one,) = found
    return one.at("t")


class TestMistakes:
    def test_a_gate_on_a_dimension_that_no_run_has(self, loaded: Read) -> None:
        told = only(
            loaded("""
            gates:
              - name: quality
                kind: floor
                dimension: corectness
                raise_below: 0.8
                clear_above: 0.9
            """).mistakes
        )
        assert told.startswith(
            "t:4: gates[0].dimension: no agent's runs have a dimension corectness; did you mean `correctness`? they have: "
        )
        assert "policy_and_safety" in told

    def test_spans_that_would_expire_before_a_worker_reads_them(self, loaded: Read) -> None:
        found = loaded("""
            retention: {spans: 10d, projects: {shop: 8d, other: 9d}}
            kafka: {brokers: ["localhost:9092"], retention: 9d}
            """).mistakes
        assert only(found) == (
            "t:1: retention.projects.shop: is 8d, and records of Kafka are read for 9d: some would expire before they are graded; "
            "write 9d or more, or a shorter kafka.retention"
        )

    def test_a_budget_for_a_model_whose_price_nobody_knows(self, loaded: Read) -> None:
        written = """
            judge: {{base_url: "http://127.0.0.1:1/v1", model: {model}, budget: {{per_day: 5}}{more}}}
            """
        assert only(loaded(written.format(model="house-model", more="")).mistakes) == (
            "t:1: judge.budget: nobody knows what house-model costs; write judge.price, so that what is spent can be told"
        )
        price = ", price: {input_per_million: 1, output_per_million: 2}"
        assert loaded(written.format(model="house-model", more=price)).mistakes == ()
        assert loaded(written.format(model="gpt-4o-mini", more="")).mistakes == (), "the price table knows it"

    def test_a_budget_and_a_further_model_whose_price_nobody_knows(self, loaded: Read) -> None:
        written = """
            judge:
              base_url: http://127.0.0.1:1/v1
              model: gpt-4o-mini
              budget: {{per_day: 5}}
              models: {{house-model: {{{price}}}}}
            """
        told = only(loaded(written.format(price="")).mistakes)
        assert told.endswith(
            "nobody knows what house-model costs; write judge.models.house-model.price, so that what is spent can be told"
        )
        assert loaded(written.format(price="price: {input_per_million: 0, output_per_million: 0}")).mistakes == ()

    def test_a_panel_with_a_model_that_nobody_can_ask(self, loaded: Read, tmp_path: Path) -> None:
        rubric(tmp_path, "a", "b", "c", "d")
        with (tmp_path / "mine.yaml").open("a", encoding="utf-8") as file:
            file.write("panel: {models: [gpt-4o-mini, claude-haiku-4-5]}\n")
        written = "agents: {default: {rubric: mine.yaml}}\ngates: []\n"
        assert loaded(written).mistakes == (), "without a judge nothing is asked"
        judge = "judge: {base_url: 'http://127.0.0.1:1/v1', model: gpt-4o-mini"
        told = [one.at("t") for one in loaded(f"{written}{judge}}}\n").mistakes]
        assert told[0] == (
            "t:1: agents.default.rubric: on the panel of a of mine: no endpoint is configured for claude-haiku-4-5; "
            "write it under judge.models, as {claude-haiku-4-5: {}} where it is at judge.base_url"
        )
        assert loaded(f"{written}{judge}, models: {{claude-haiku-4-5: {{}}}}}}\n").mistakes == ()

    def test_a_pairing_within_a_family(self, loaded: Read) -> None:
        told = only(
            loaded("judge: {base_url: 'http://127.0.0.1:1/v1', model: gpt-4o-mini, pairing: {openai: gpt-4o-mini}}").mistakes
        )
        assert told == (
            "t:1: judge: pairing.openai is gpt-4o-mini, which is of that family itself; write a model of another one, for a judge is lenient "
            "with its own"
        )

    @pytest.mark.parametrize("written", ["spans: 6d", "projects: {shop: 167h}"])
    def test_a_retention_that_is_too_short(self, loaded: Read, written: str) -> None:
        assert "write 7d or more" in only(loaded(f"retention: {{{written}}}").mistakes)

    def test_a_gate_on_a_dimension_that_its_agent_lacks(self, loaded: Read) -> None:
        told = only(
            loaded("""
            agents:
              batch: {rubric: null}
            gates:
              - {name: quality, kind: floor, agent: batch, dimension: tone, raise_below: 0.8, clear_above: 0.9}
            """).mistakes
        )
        assert told.startswith("t:4: gates[0].dimension: the runs of batch have no dimension tone")

    def test_a_hard_gate_on_a_check_that_is_not_declared(self, loaded: Read) -> None:
        told = only(
            loaded("""
            gates:
              - name: rules
                kind: hard
                dimensions:
                  - answer_present
                  - refund_once
            """).mistakes
        )
        assert told.startswith("t:6: gates[0].dimensions[1]: no agent's runs have a dimension refund_once")

    def test_a_notification_to_an_alert_that_there_is_not(self, loaded: Read) -> None:
        told = only(
            loaded("""
            gates:
              - {name: rules, kind: hard, notify: [oncall]}
            alerts:
              - {name: on-call, webhook: "https://alerts.example.com"}
            """).mistakes
        )
        assert told == "t:2: gates[0].notify[0]: no alert is called oncall; did you mean `on-call`? the alerts are: on-call"

    @pytest.mark.parametrize("section", ["gates", "alerts"])
    def test_a_name_that_is_taken(self, loaded: Read, section: str) -> None:
        rest = "kind: hard" if section == "gates" else "webhook: https://alerts.example.com"
        told = only(loaded(f"{section}:\n  - {{name: a, {rest}}}\n  - {{name: a, {rest}}}\n").mistakes)
        assert told == f"t:3: {section}[1].name: a is the name of {section}[0] too; give each a name of its own"

    def test_a_policy_with_the_name_of_a_dimension(self, loaded: Read) -> None:
        told = only(
            loaded("""
            agents:
              support:
                checks:
                  policies:
                    - {name: fine, forbid: {tool: a}}
                    - name: tone
                      forbid: {tool: shout}
            """).mistakes
        )
        assert told == (
            "t:6: agents.support.checks.policies[1].name: tone is a dimension of the rubric; "
            "give the check another name, such as tone_rule"
        )

    def test_a_policy_with_the_name_of_a_built_in_check(self, loaded: Read) -> None:
        told = only(loaded("agents:\n  a:\n    checks:\n      policies:\n        - {name: loops, forbid: {tool: x}}\n").mistakes)
        assert told.startswith(
            "t:5: agents.a.checks.policies[0].name: loops is the name of a built-in check; give the declared one another name"
        )

    def test_two_policies_of_one_name(self, loaded: Read) -> None:
        rules = "        - {name: a, forbid: {tool: x}}\n"
        told = only(loaded(f"agents:\n  a:\n    checks:\n      policies:\n{rules}{rules}").mistakes)
        assert told == "t:6: agents.a.checks.policies[1].name: two checks are called a; give each a name of its own"

    def test_a_look_for_secrets_that_nothing_marks(self, loaded: Read) -> None:
        written = "redaction: {off: true}\nagents:\n  a:\n    checks:\n      output:\n        - {name: silent, no_secret: true}\n"
        told = only(loaded(written).mistakes)
        assert told.startswith("t:6: agents.a.checks.output[0].no_secret: silent reads what redaction found")

    def test_a_calibration_that_there_is_not(self, loaded: Read) -> None:
        told = only(loaded("judge:\n  calibration: nowhere.yaml\n").mistakes)
        assert told.startswith("t:2: judge.calibration: the calibration ")
        assert "nowhere.yaml cannot be read" in told

    def test_a_rubric_that_there_is_not(self, loaded: Read, tmp_path: Path) -> None:
        told = only(loaded("agents:\n  a:\n    rubric: suport\n").mistakes)
        assert told == (
            f"t:3: agents.a.rubric: there is no rubric {tmp_path / 'suport'}; write the path of a file, or one of: "
            f"{', '.join(SHIPPED_RUBRICS)}; did you mean `support`?"
        )

    def test_a_rubric_that_is_wrong_in_itself(self, loaded: Read, tmp_path: Path) -> None:
        (tmp_path / "mine.yaml").write_text("name: mine\n", encoding="utf-8")
        told = only(loaded("agents:\n  a:\n    rubric: mine.yaml\n").mistakes)
        assert told.startswith(f"t:3: agents.a.rubric: {tmp_path / 'mine.yaml'} is not a rubric:")

    def test_a_dimension_by_code_without_its_check(self, loaded: Read, tmp_path: Path) -> None:
        rubric(tmp_path, "answer_present", "speed", "loops", "tool_errors", measured_by="code")
        told = only(loaded("agents:\n  a:\n    rubric: mine.yaml\n").mistakes)
        assert told.startswith(
            "t:3: agents.a.rubric: mine measures speed by code, and no check is called so; the checks are: answer_present"
        )

    def test_a_floor_that_clears_where_it_trips(self, loaded: Read) -> None:
        told = only(
            loaded("""
            gates:
              - name: quality
                kind: floor
                raise_below: 0.9
                clear_above: 0.8
            """).mistakes
        )
        assert told == (
            "t:5: gates[0].clear_above: clear_above (0.8) is below raise_below (0.9): the gate would clear while it still fires; "
            "write clear_above: 0.9 or more"
        )

    def test_one_port_for_both_protocols(self, loaded: Read) -> None:
        told = only(loaded("receiver:\n  grpc_port: 4318\n").mistakes)
        assert told.startswith("t:1: receiver.http_port: both ports are 4318; write two different ones")

    def test_the_project_said_twice_and_differently(self, loaded: Read) -> None:
        told = only(loaded("project: acme\nreceiver:\n  project: beta\n").mistakes)
        assert told.startswith("t:3: receiver.project: is beta, and the project at the top is acme")

    def test_a_receiver_open_to_strangers(self, loaded: Read) -> None:
        told = only(loaded("receiver:\n  host: 0.0.0.0\n").mistakes)
        assert told.startswith(
            "t:2: receiver.host: 0.0.0.0 can be reached from other machines, and no key is configured; write receiver.keys"
        )


JUDGE = """
judge:
  base_url: https://api.example.com/v1
  model: gpt-5-mini
"""
KEY = {"OPENAI_API_KEY": "sk-x"}
QUALITY = """
gates:
  - name: quality
    kind: floor
    dimension: tone
    measure: mean
    raise_below: 3
    clear_above: 4
"""


class TestWarnings:
    def test_nothing_at_all_is_warned_of_without_a_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        assert read(None, {}).warnings == ()

    def test_a_judge_without_its_key(self, loaded: Read) -> None:
        told = [one.at("t") for one in loaded(f"gates: []\n{JUDGE}").warnings]
        assert told == [
            "t:3: judge.api_key_env: the environment has no OPENAI_API_KEY; set it to the endpoint's key before you start"
        ]

    def test_a_further_model_without_its_key(self, loaded: Read) -> None:
        models = "  models: {m: {base_url: 'https://there.example/v1', api_key_env: THEIRS}, here: {}, open: {base_url: 'https://o.example'}}"
        told = [one.at("t") for one in loaded(f"gates: []\n{JUDGE}{models}\n", KEY).warnings]
        assert told == [
            "t:6: judge.models.m.api_key_env: the environment has no THEIRS; set it to the endpoint's key before you start"
        ]

    @pytest.mark.parametrize("host", ["127.0.0.1:1234", "localhost", "[::1]:80"])
    def test_a_judge_on_this_machine_needs_none(self, loaded: Read, host: str) -> None:
        assert loaded(f'gates: []\njudge: {{base_url: "http://{host}/v1", model: x}}').warnings == ()

    def test_an_uncalibrated_judge_holds_a_gate_on_its_dimension_and_why(self, loaded: Read) -> None:
        told = only(loaded(JUDGE + QUALITY, KEY).warnings)
        assert told == (
            "t:6: gates[0]: the gate quality holds for runs of default: the judge is uncalibrated for tone: its scores there are shown and "
            "decide nothing, so tone cannot trip it. Compare it with people and write the result into judge.calibration, "
            "or write judge.uncalibrated: decide"
        )

    def test_and_the_default_gate_on_the_verdict(self, loaded: Read) -> None:
        told = only(loaded(JUDGE, KEY).warnings)
        assert told.startswith(
            "t:1: judge: the gate verdict-floor holds for runs of default: the judge is uncalibrated for correctness,"
        )
        assert "a verdict is decided only where a check fails" in told

    def test_not_where_uncalibrated_scores_decide(self, loaded: Read) -> None:
        assert loaded(f"{JUDGE}  uncalibrated: decide\n{QUALITY}", KEY).warnings == ()

    @pytest.mark.parametrize(("authority", "held"), [("assisted", False), ("alone", False), ("frozen", True)])
    def test_what_the_judge_has_earned_lets_a_gate_go(self, loaded: Read, tmp_path: Path, authority: str, held: bool) -> None:
        contract = next(one.hash for one in _contracts(tmp_path) if one.dimension == "tone")
        calibration = f'- {{contract: "{contract}", dimension: tone, authority: {authority}}}\n'
        (tmp_path / "calibration.yaml").write_text(calibration, encoding="utf-8")
        warnings = loaded(f"{JUDGE}  calibration: calibration.yaml\n{QUALITY}", KEY).warnings
        assert bool(warnings) == held

    def test_a_written_gate_without_any_judge(self, loaded: Read) -> None:
        told = only(loaded(QUALITY).warnings)
        assert told.endswith("there is no judge, so tone cannot trip it; write judge.base_url and judge.model")

    def test_a_hard_gate_where_nothing_gates(self, loaded: Read) -> None:
        text = "agents: {a: {checks: {answer_present: {gate: false}}}}\ngates: [{name: x, kind: hard, agent: a}]"
        assert (
            only(loaded(text).warnings) == "t:2: gates[0]: the gate x holds for runs of a: no check gates, so no run can trip it"
        )

    @pytest.mark.parametrize(("dimensions", "warned"), [(3, True), (4, False), (6, False), (7, True)])
    def test_a_rubric_of_unusual_size(self, loaded: Read, tmp_path: Path, dimensions: int, warned: bool) -> None:
        rubric(tmp_path, *[f"part_{index}" for index in range(dimensions)])
        found = loaded("gates: []\nagents:\n  a:\n    rubric: mine.yaml\n").warnings
        if not warned:
            assert found == ()
        else:
            assert only(found).startswith(
                f"t:4: agents.a.rubric: the rubric mine has {dimensions} dimensions; 4 to 6 are the habit"
            )

    def test_a_rubric_that_people_measure(self, loaded: Read, tmp_path: Path) -> None:
        rubric(tmp_path, "a", "b", "c", "d", measured_by="human")
        found = loaded("gates: []\nagents: {a: {rubric: mine.yaml}}\n").warnings
        assert only(found).startswith("t:2: agents.a.rubric: people measure a, b, c, d of the rubric mine")

    def test_a_gate_for_an_agent_that_is_probably_another(self, loaded: Read) -> None:
        text = "agents: {support: {}}\ngates: [{name: x, kind: hard, agent: suport}]"
        told = only(loaded(text).warnings)
        assert told == (
            "t:2: gates[0].agent: no entry of agents is called suport, so the default one holds for it; did you mean `support`?"
        )

    def test_variables_that_will_be_asked_for(self, loaded: Read) -> None:
        text = """
        store: {url: "http://a@b:8123", password_env: DB_PASSWORD}
        receiver:
          keys:
            acme: ["env:ACME_KEY", plain]
        """
        told = [one.at("t").partition(";")[0] for one in loaded(text).warnings]
        assert told == [
            "t:1: store.password_env: the environment has no DB_PASSWORD",
            "t:4: receiver.keys.acme[0]: the environment has no ACME_KEY",
        ]
        assert loaded(text, {"DB_PASSWORD": "x", "ACME_KEY": "y"}).warnings == ()


def _contracts(folder: Path) -> tuple[Contract, ...]:
    path = folder / "before.yaml"
    path.write_text(JUDGE, encoding="utf-8")
    return graders_of(load(path, {}))["default"].judged
