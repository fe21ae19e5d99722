"""Whatever settings there are, the file that says them loads to the same settings."""

from decimal import Decimal
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import SecretStr
from ruamel.yaml import YAML

from pipeline.config.duration import spoken_duration
from pipeline.config.keys import is_duration, written
from pipeline.config.load import load
from pipeline.config.receiver import ReceiverSettings
from pipeline.config.store import StoreSettings
from pipeline.config.tracegrade import AgentSettings, TracegradeSettings
from pipeline.judges.settings import JudgeSettings, Price
from pipeline.model.time import HOUR, MINUTE, SECOND
from pipeline.scorers import ChecksSettings
from pipeline.scorers.answer import AnswerSettings
from pipeline.scorers.limits import LimitSettings, LimitsSettings
from pipeline.scorers.policies import PolicySettings
from pipeline.scorers.policy_rules import AtMostSettings, BeforeSettings, ForbidSettings
from pipeline.scorers.predicates import Predicate
from pipeline.stages.alert import AlertSettings
from pipeline.stages.close import AssembleSettings
from pipeline.stages.gate import BurnPair, BurnRateGate, DriftGate, FloorGate, HardGate
from pipeline.stages.sample import KeepRule, SampleSettings


def dumped(whole: TracegradeSettings) -> str:
    """Return the file that a user would write for the settings: what is set, durations with units, ``${`` escaped."""
    data = whole.model_dump(mode="python", by_alias=True, exclude_unset=True)
    for location, field, value in written(TracegradeSettings, plain(data)):
        if is_duration(field):
            put(data, location, spoken_duration(value))
    text = StringIO()
    written_out = YAML(typ="safe", pure=True)
    written_out.default_flow_style = False  # in brackets it writes a text such as ?x plain, and reads a mapping back
    written_out.dump(plain(data), text)
    return text.getvalue()


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, SecretStr):
        return plain(value.get_secret_value())
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, str | Path):
        return str(value).replace("${", "$${")
    return value


def put(data: Any, location: tuple[Any, ...], value: str) -> None:
    for part in location[:-1]:
        data = data[part]
    data[location[-1]] = value


text = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=12) | st.sampled_from(
    ["yes", "null", "1", "1e3", "${HOME}", "$${x", "a: b", "#", "- x", "*a", "&a", "2024-01-01", "0x1F", "'", '"', "~", "<<"]
)
name = st.from_regex(r"[a-z][a-z0-9_]{0,10}", fullmatch=True).map(lambda one: f"rule_{one}")
share = st.floats(0, 1)
durations = st.integers(1, 10_000).map(lambda count: count * SECOND) | st.integers(1, 999).map(
    lambda count: count * SECOND // 1000
)
decimals = st.decimals(0, 10_000, places=3)
predicates = st.builds(
    Predicate,
    equals=text | st.booleans() | decimals | st.none(),
    **{"in": st.lists(text | decimals, min_size=1, max_size=3).map(tuple)},
    greater_than=decimals,
)
where = st.dictionaries(text, predicates, max_size=1)
rules = st.one_of(
    st.fixed_dictionaries({"forbid": st.builds(ForbidSettings, tool=text, where=where)}),
    st.fixed_dictionaries({"before": st.builds(BeforeSettings, tool=text, needs=text, where=where)}),
    st.fixed_dictionaries({"at_most": st.builds(AtMostSettings, tool=text, times=st.integers(0, 9), per=text, where=where)}),
)
policies = st.builds(lambda called, rule, gate: PolicySettings(name=called, gate=gate, **rule), name, rules, st.booleans())
limits = st.none() | st.builds(LimitSettings, max=decimals, gate=st.booleans())
checks = st.builds(
    ChecksSettings,
    answer_present=st.builds(AnswerSettings, gate=st.booleans()),
    limits=st.builds(LimitsSettings, steps=limits, seconds=limits, input_tokens=limits),
    policies=st.lists(policies, max_size=2, unique_by=lambda policy: policy.name).map(tuple),
    alternatives=st.dictionaries(text, st.lists(text, min_size=1, max_size=2).map(tuple), max_size=2),
)
samplings = st.builds(SampleSettings, rate=share, keep=st.lists(st.sampled_from(KeepRule), unique=True).map(tuple), salt=text)
agents = st.dictionaries(
    text, st.builds(AgentSettings, rubric=st.sampled_from(["support", None]), sampling=samplings, checks=checks), max_size=3
)
judges = st.builds(
    JudgeSettings,
    base_url=st.sampled_from(["http://127.0.0.1:1/v1", "https://api.example.com"]),
    model=text,
    timeout=durations,
    deadline=durations,
    seeds=st.just((1, 2, 3)),
    temperature=st.floats(0, 2),
    uncalibrated=st.sampled_from(["show", "decide"]),
    price=st.none() | st.builds(Price, input_per_million=decimals, output_per_million=decimals),
)
alerts = st.just(
    (AlertSettings(name="on-call", webhook=SecretStr("https://alerts.example.com/?t=${x}"), headers={"X": SecretStr("1")}),)
)
floors = st.builds(
    FloorGate,
    name=name,
    kind=st.just("floor"),
    agent=st.none() | text,
    raise_below=st.floats(0.01, 0.5),
    clear_above=st.floats(0.5, 1),
    window=st.integers(1, 600).map(lambda minutes: minutes * MINUTE),
    min_n=st.integers(1, 100),
    notify=st.sampled_from([None, (), ("on-call",)]),
)
burns = st.builds(
    BurnRateGate,
    name=name,
    kind=st.just("burn_rate"),
    budget=st.floats(0.01, 0.06),
    pairs=st.just((BurnPair(long=HOUR, short=5 * MINUTE, burn=14.4),)),
    z=st.floats(1, 6),
    clear_after=st.integers(1, 600).map(lambda minutes: minutes * MINUTE),
)
drifts = st.builds(
    DriftGate,
    name=name,
    kind=st.just("drift"),
    budget=st.floats(0.01, 0.9),
    false_alarm_every=st.integers(10_000, 10_000_000).map(lambda count: count * SECOND),
)
hards = st.builds(HardGate, name=name, kind=st.just("hard"), dimensions=st.sampled_from([None, ("loops",)]), quiet=durations)
gates = st.lists(floors | burns | drifts | hards, max_size=3, unique_by=lambda gate: gate.name).map(tuple)
wholes = st.builds(
    TracegradeSettings,
    project=text,
    store=st.builds(StoreSettings, path=st.sampled_from([Path("/data/x"), Path("/data/${y}")]), database=name),
    receiver=st.builds(
        ReceiverSettings,
        http_port=st.integers(5000, 9999),
        # The emitter writes [?0] without quotes, which its own reader takes for a mapping.
        keys=st.dictionaries(
            text,
            st.lists(text.filter(lambda key: not key.startswith("?")).map(SecretStr), min_size=1, max_size=2),
            max_size=2,
        ),
    ),
    assemble=st.builds(AssembleSettings, quiet_period=durations, greatest_age=durations),
    agents=agents,
    judge=judges,
    gates=gates,
    alerts=alerts,
)


@settings(max_examples=40, deadline=None)
@given(wholes)
def test_loading_a_dumped_configuration_gives_the_same_configuration(whole: TracegradeSettings) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "tracegrade.yaml"
        path.write_text(dumped(whole), encoding="utf-8")
        assert load(path, {}) == whole
