"""Every kind of mistake is told by its line, with what to write instead."""

from pathlib import Path
from textwrap import dedent

import pytest

from pipeline.config.load import load, read
from pipeline.errors import ConfigurationError


def mistakes(folder: Path, text: str, environment: dict[str, str] | None = None) -> list[str]:
    """Return what is wrong with a file, as it is shown."""
    path = folder / "tracegrade.yaml"
    path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
    loaded = read(path, environment or {})
    assert (loaded.settings is None) == bool(loaded.mistakes)
    return [one.at("tracegrade.yaml") for one in loaded.mistakes]


def one_mistake(folder: Path, text: str, environment: dict[str, str] | None = None) -> str:
    (only,) = mistakes(folder, text, environment)
    return only


KEYS = [
    pytest.param(
        "stor: {}",
        "tracegrade.yaml:1: stor: unknown key; did you mean `store`? "
        "Known here: project, store, retention, kafka, worker, bridge, receiver, redaction, assemble, agents, records, judge, prices, quality, gates, alerts",
        id="unknown, near a known one",
    ),
    pytest.param(
        """
        judge:
          rate: 0.5
        """,
        "tracegrade.yaml:2: judge.rate: unknown key; it belongs under agents.<name>.sampling; known here: base_url, model,",
        id="known elsewhere",
    ),
    pytest.param(
        """
        store:
          colour: blue
        """,
        "tracegrade.yaml:2: store.colour: unknown key; known here: path, url, password_env, database, min_free",
        id="known nowhere",
    ),
    pytest.param(
        """
        store: {}
        project: a
        store: {}
        """,
        "tracegrade.yaml:3: store: is already written on line 1; keep one of the two",
        id="written twice",
    ),
    pytest.param(
        """
        agents:
          a:
            checks:
              policies:
                - name: once
                  at_most: {tool: refund}
        """,
        "tracegrade.yaml:6: agents.a.checks.policies[0].at_most.times: is missing (How often it may succeed); write `times: …`",
        id="missing",
    ),
    pytest.param(
        """
        judge:
          calibration:
        """,
        "tracegrade.yaml:2: judge.calibration: is empty; write a value, write null where you mean none, or remove the key",
        id="nothing behind a key that may be null",
    ),
    pytest.param(
        """
        receiver:
          host:
        """,
        "tracegrade.yaml:2: receiver.host: is empty; write text, such as 127.0.0.1, or remove the key",
        id="nothing behind a key that may not",
    ),
]

TYPES = [
    pytest.param(
        "agents: {a: {sampling: {salt: 2}}}", '1: agents.a.sampling.salt: 2 is not text; write "2"', id="number for text"
    ),
    pytest.param(
        "receiver: {http_port: http}",
        "1: receiver.http_port: http is not a whole number; write a whole number, such as 4318",
        id="text for a whole number",
    ),
    pytest.param(
        "receiver: {max_body: true}", "1: receiver.max_body: true is not a number; write 67108864", id="true for a number"
    ),
    pytest.param(
        "judge: {temperature: hot}",
        "1: judge.temperature: hot is not a number; write a number, such as 0.7",
        id="text for a number",
    ),
    pytest.param(
        "agents: {a: {checks: {answer_present: {gate: maybe}}}}",
        "1: agents.a.checks.answer_present.gate: maybe is not true or false; write true or false, such as true",
        id="text for a switch",
    ),
    pytest.param(
        "agents: {a: {sampling: {keep: error}}}",
        "1: agents.a.sampling.keep: error is not a list; write [error]",
        id="text for a list",
    ),
    pytest.param(
        "gates: {name: a}",
        "1: gates: a mapping is not a list; write each item on a line of its own after `- `",
        id="mapping for a list",
    ),
    pytest.param(
        "agents: {a: strict}",
        "1: agents.a: strict is not a mapping; write its keys one to a line below it: rubric, risk, sampling, checks, references, quality",
        id="text for a mapping",
    ),
    pytest.param(
        "agents: {a: {rubric: 7}}", '1: agents.a.rubric: 7 is not text or a path; write "7"', id="several types allowed"
    ),
    pytest.param(
        "assemble: {idle_timeout: 5 minutes}",
        "1: assemble.idle_timeout: '5 minutes' is not a duration; write a whole number and a unit, such as 10s, 5m, 24h or 7d",
        id="no duration",
    ),
    pytest.param(
        "assemble: {idle_timeout: 5}",
        "1: assemble.idle_timeout: 5 has no unit; write 5s for seconds, or a number with ms, m, h or d",
        id="duration without a unit",
    ),
    pytest.param(
        "judge: {temperature: .nan}",
        "1: judge.temperature: .nan is not a number; write a finite one, or put text in quotes",
        id="no finite number",
    ),
    pytest.param(
        "- a\n- b", ": a list is not a mapping; write its keys one to a line below it: project, store,", id="whole file"
    ),
]

VALUES = [
    pytest.param(
        "agents:\n  a:\n    sampling:\n      rate: 1.5",
        "4: agents.a.sampling.rate: 1.5 is not between 0 and 1; write a share such as 0.2",
        id="share",
    ),
    pytest.param(
        "receiver: {grpc_port: 70000}",
        "1: receiver.grpc_port: 70000 is not between 0 and 65535; write a number in this range, such as 4317",
        id="two limits",
    ),
    pytest.param("judge: {concurrency: 0}", "1: judge.concurrency: 0 is too small; write 1 or more, such as 8", id="lower limit"),
    pytest.param(
        "gates: [{name: a, kind: hard, quiet: 0s}]",
        "1: gates[0].quiet: 0s is too small; write more than 0, such as 1h",
        id="limit of a duration",
    ),
    pytest.param(
        "agents: {a: {checks: {limits: {steps: -1}}}}",
        "1: agents.a.checks.limits.steps.max: -1 is too small; write 0 or more",
        id="short form",
    ),
    pytest.param(
        "agents: {a: {sampling: {keep: [eror]}}}",
        "1: agents.a.sampling.keep[0]: eror is not one of error, thumbs_down; did you mean `error`?",
        id="one of several words",
    ),
    pytest.param(
        "judge: {uncalibrated: no}",
        "1: judge.uncalibrated: no is not one of show, decide; write one of these",
        id="one of several words, none near",
    ),
    pytest.param(
        "gates:\n  - name: a\n    kind: flor",
        "2: gates[0]: `kind: flor` is not one of burn_rate, drift, floor, hard; did you mean `floor`?",
        id="kind",
    ),
    pytest.param(
        "gates:\n  - name: a",
        "2: gates[0]: has no `kind`; write `kind: burn_rate`, `kind: drift`, `kind: floor` or `kind: hard`",
        id="no kind",
    ),
    pytest.param(
        "store: {database: a b}",
        "1: store.database: a b is not a name that can be used here; write one that fits ^[A-Za-z_][A-Za-z0-9_]*$, as tracegrade does",
        id="pattern",
    ),
    pytest.param('project: ""', "1: project: is empty; write default", id="empty text"),
    pytest.param("receiver: {keys: {acme: []}}", "1: receiver.keys.acme: is empty; write at least one", id="empty list"),
    pytest.param(
        "judge:\n  base_url: ftp://x",
        "2: judge.base_url: 'ftp://x' is not an address; write one such as https://api.openai.com/v1",
        id="a part's own rule",
    ),
    pytest.param(
        "judge:\n  timeout: 1m\n  base_url: http://x",
        "3: judge.base_url: base_url is set and model is not; write the id of the model that judges",
        id="a rule of several keys, told at the key it names",
    ),
]

YAML = [
    pytest.param(
        "judge: model: x",
        "1: is not YAML here: mapping values are not allowed here; write `key: value` one to a line, each as far in as its neighbours, "
        "and quote text that holds `: `",
        id="two on a line",
    ),
    pytest.param("store:\n\tpath: x", "2: is not YAML here: found character '\\t' that cannot start any token; ", id="tab"),
    pytest.param(
        'project: a\nstore: {path: "x', "2: is not YAML here: found unexpected end of stream; close the quote", id="open quote"
    ),
    pytest.param(
        "agents: [a,\nproject: x",
        "2: is not YAML here: expected ',' or ']', but got '<stream end>' (begun on line 1); close the bracket",
        id="bracket",
    ),
    pytest.param(
        "project: *x", "1: is not YAML here: found undefined alias 'x'; put text that begins with `*` in quotes", id="alias"
    ),
    pytest.param("project: a\n---\nproject: b", "2: is not YAML here: ", id="two documents"),
    pytest.param(
        "project: !secret x", "1: project: has the tag !secret; write it without a tag, in quotes if it is text", id="tag"
    ),
    pytest.param("agents: &x\n  a: *x", "1: agents.a: refers to itself; write the value out", id="cycle"),
    pytest.param("? [a]\n: 1", "1: a key must be text; write `key: value`", id="key that is no text"),
]


@pytest.mark.parametrize(("text", "expected"), [*TYPES, *VALUES, *YAML])
def test_a_mistake_is_told_by_line_with_what_to_write(tmp_path: Path, text: str, expected: str) -> None:
    assert mistakes(tmp_path, text)[0].startswith(f"tracegrade.yaml{'' if expected.startswith(':') else ':'}{expected}")


@pytest.mark.parametrize(("text", "expected"), KEYS)
def test_a_wrong_key_is_told_by_line_with_what_to_write(tmp_path: Path, text: str, expected: str) -> None:
    assert one_mistake(tmp_path, text).startswith(expected)


def test_every_mistake_is_listed_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = """
    agents:
      support:
        sampling:
          rate: 1.5
          keep: [eror]
    judge:
      uncalibrated: maybe
      deadline: 15
      api_key_env: ${MISSING}
    """
    assert [line.split(": ")[:2] for line in mistakes(tmp_path, text)] == [
        ["tracegrade.yaml:4", "agents.support.sampling.rate"],
        ["tracegrade.yaml:5", "agents.support.sampling.keep[0]"],
        ["tracegrade.yaml:7", "judge.uncalibrated"],
        ["tracegrade.yaml:8", "judge.deadline"],
        ["tracegrade.yaml:9", "judge.api_key_env"],
    ]


def test_loading_raises_all_of_them_under_the_name_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "other.yaml"
    path.write_text("stor: {}\njudge: {rate: 1}\n", encoding="utf-8")
    with pytest.raises(ConfigurationError) as raised:
        load(path, {})
    assert [line.partition(": ")[0] for line in str(raised.value).splitlines()] == [f"{path}:1", f"{path}:2"]


def test_a_file_that_is_named_and_missing_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"none\.yaml: cannot be read \(No such file or directory\); name the file"):
        load(tmp_path / "none.yaml", {})


def test_a_file_that_is_no_text_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_bytes(b"project: \xff\xfe")
    with pytest.raises(ConfigurationError, match=r"t\.yaml: is not UTF-8 text; save it as UTF-8"):
        load(tmp_path / "t.yaml", {})


def test_what_is_no_configuration_is_refused_and_not_followed(tmp_path: Path) -> None:
    assert one_mistake(tmp_path, "[" * 5000) == "tracegrade.yaml: is nested too deep; this is not a configuration"
    assert one_mistake(tmp_path, f"# {'x' * 1_000_000}").startswith("tracegrade.yaml: is larger than 1000000 characters")


def test_a_mark_at_the_start_of_the_file_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text("project: acme\n", encoding="utf-8-sig")
    assert load(tmp_path / "t.yaml", {}).project == "acme"


class TestEnvironment:
    def test_a_reference_stands_for_the_variable(self, tmp_path: Path) -> None:
        (tmp_path / "t.yaml").write_text('project: "${TEAM}-${STAGE}"\nreceiver: {http_port: "${PORT}"}\n', encoding="utf-8")
        settings = load(tmp_path / "t.yaml", {"TEAM": "acme", "STAGE": "prod", "PORT": "9000"})
        assert (settings.project, settings.receiver.http_port) == ("acme-prod", 9000)

    def test_an_escaped_one_stays_text(self, tmp_path: Path) -> None:
        (tmp_path / "t.yaml").write_text("project: $${TEAM} ${TEAM} $TEAM\n", encoding="utf-8")
        assert load(tmp_path / "t.yaml", {"TEAM": "acme"}).project == "${TEAM} acme $TEAM"

    def test_a_missing_variable_is_a_mistake(self, tmp_path: Path) -> None:
        told = one_mistake(tmp_path, "store: {}\nproject: ${TEAM}")
        assert told == (
            "tracegrade.yaml:2: project: the environment has no variable TEAM; set it before you start, or write the value here"
        )

    @pytest.mark.parametrize("written", ["${a-b}", "${}", "${TEAM"])
    def test_what_is_no_reference_is_a_mistake(self, tmp_path: Path, written: str) -> None:
        told = one_mistake(tmp_path, f"project: {written}", {"TEAM": "x"})
        assert told.startswith(
            f"tracegrade.yaml:1: project: {written} is no reference; write ${{NAME}} with a variable's name, or $${{"
        )

    def test_what_a_variable_holds_is_never_shown(self, tmp_path: Path) -> None:
        secret = "s3cr3t-value"
        text = """
        judge: {base_url: "${SECRET}", model: x}
        agents: {a: {rubric: "${SECRET}"}}
        alerts: [{name: "a ${SECRET}", webhook: "${SECRET}"}]
        assemble: {idle_timeout: "${SECRET}"}
        """
        told = "\n".join(mistakes(tmp_path, text, {"SECRET": secret}))
        assert secret not in told
        assert "'${SECRET}' is not an address" in told
        assert "'${SECRET}' is not a duration" in told

    def test_a_secret_that_is_written_out_is_not_shown(self, tmp_path: Path) -> None:
        told = mistakes(tmp_path, "alerts: [{name: a, webhook: 98765}]\nreceiver: {keys: {acme: [43210]}}")
        assert "98765" not in str(told)
        assert "43210" not in str(told)


class TestAnchors:
    def test_a_value_can_be_shared(self, tmp_path: Path) -> None:
        text = "agents:\n  a: {sampling: &usual {rate: 0.25}}\n  b: {sampling: *usual}\n  c: {sampling: {<<: *usual, salt: x}}\n"
        (tmp_path / "t.yaml").write_text(text, encoding="utf-8")
        settings = load(tmp_path / "t.yaml", {})
        assert [settings.agents[name].sampling.rate for name in "abc"] == [0.25, 0.25, 0.25]
        assert settings.agents["c"].sampling.salt == "x"

    def test_a_key_of_ones_own_wins(self, tmp_path: Path) -> None:
        text = "agents:\n  a: {sampling: &usual {rate: 0.25}}\n  b: {sampling: {<<: *usual, rate: 0.5}}\n"
        (tmp_path / "t.yaml").write_text(text, encoding="utf-8")
        assert load(tmp_path / "t.yaml", {}).agents["b"].sampling.rate == 0.5

    def test_a_mistake_in_what_was_taken_over_is_told_where_it_is_written(self, tmp_path: Path) -> None:
        told = mistakes(tmp_path, "agents:\n  a:\n    sampling: &usual\n      rate: 7\n  b:\n    sampling: {<<: *usual}\n")
        assert [line.partition(": ")[0] for line in told] == ["tracegrade.yaml:4", "tracegrade.yaml:4"]

    def test_a_mapping_that_takes_over_itself_is_a_mistake(self, tmp_path: Path) -> None:
        told = mistakes(tmp_path, "judge: &j\n  <<: *j\n  base_url: http://x\n  rate: 1\n")
        assert any(line.startswith("tracegrade.yaml:1: judge: refers to itself") for line in told)
        assert any(line.startswith("tracegrade.yaml:4: judge.rate: unknown key") for line in told)

    def test_only_mappings_can_be_taken_over(self, tmp_path: Path) -> None:
        told = one_mistake(tmp_path, "store:\n  <<: 3\n")
        assert told == "tracegrade.yaml:2: store: `<<` takes a mapping; write `<<: *name` of one that was marked with `&name`"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (
            "receiver: {max_spans: 999999999999999999999999}",
            "receiver.max_spans: is too large; write 9223372036854775807 or less, such as 16384",
        ),
        ("judge: {budget: {per_day: 1e30}}", "judge.budget.per_day: is too large; write 9223372036854775807 or less"),
        ("judge: {budget: {per_day: '1e999'}}", "judge.budget.per_day: is too large; write 9223372036854775807 or less"),
        (
            "receiver: {max_body: 2147483648}",
            "receiver.max_body: 2147483648 is not between 1 and 2147483647; write a number in this range, such as 67108864",
        ),
        (
            "retention: {spans: 99999999999999d}",
            "retention.spans: 99999999999999d is too long; write 36500d, a hundred years, or less",
        ),
        (f"assemble: {{quiet_period: {'9' * 5000}s}}", "assemble.quiet_period: this is too long; write 36500d"),
    ],
)
def test_a_number_that_nothing_can_hold_is_refused_by_its_range(text: str, what: str, tmp_path: Path) -> None:
    assert one_mistake(tmp_path, text).startswith(f"tracegrade.yaml:1: {what}")


def test_the_longest_time_is_one(tmp_path: Path) -> None:
    assert mistakes(tmp_path, "retention: {spans: 36500d}") == []


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (r'project: "a\u202eb"', "project"),
        (r'project: " "', "project"),
        (r'receiver: {keys: {"a\tb": [k]}}', "receiver.keys.a\tb"),
        (r'receiver: {quotas: {"a\nb": {}}}', "receiver.quotas.a\nb"),
        (r'retention: {projects: {"a\0b": 30d}}', "retention.projects.a\0b"),
        (r'bridge: {topics: {t: "a\eb"}}', "bridge.topics.t"),
    ],
)
def test_a_project_has_a_name_that_can_be_read(text: str, where: str, tmp_path: Path) -> None:
    told = [one for one in mistakes(tmp_path, text) if "is no name that can be read; write letters, digits and signs" in one]
    assert any(one.startswith(f"tracegrade.yaml:1: {where}: ") for one in told)


@pytest.mark.parametrize("project", ["zürich", "team a", "team/a", "1", "支援"])
def test_a_project_may_be_called_in_any_script(project: str, tmp_path: Path) -> None:
    assert mistakes(tmp_path, f'project: "{project}"') == []


def test_an_empty_key_is_shown_as_one(tmp_path: Path) -> None:
    assert one_mistake(tmp_path, 'agents: {"": {}}') == 'tracegrade.yaml:1: agents."": is empty; write a text'


def test_a_folder_is_no_rubric(tmp_path: Path) -> None:
    assert f"agents.a.rubric: {tmp_path} is a folder; write the path of a file, or one of: " in one_mistake(
        tmp_path, f"agents: {{a: {{rubric: {tmp_path}}}}}"
    )


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (
            "gates: [{name: g, kind: hard, dimensions: [zzzz]}]",
            "no agent's runs have a dimension zzzz; they have: answer_present, ",
        ),
        (
            "gates: [{name: g, kind: hard, notify: [zzzz]}]\nalerts: [{name: a, webhook: 'http://h'}]",
            "called zzzz; the alerts are: a",
        ),
        ("redaction: {detectors: {zzzz: false}}", "no detector is called so; the detectors are: "),
    ],
)
def test_what_there_is_follows_what_there_is_not(text: str, what: str, tmp_path: Path) -> None:
    assert what in one_mistake(tmp_path, text)
