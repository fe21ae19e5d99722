"""The policy of a quality score as it is written: what it weighs, which checks it reads, and whose judgments count."""

from decimal import Decimal
from typing import Any

import msgspec
import pytest
from pydantic import ValidationError

from pipeline.config.grading import grading_of
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.model.quality import QualitySpec, canonical_hash
from pipeline.stages.trouble import ALARMING

CHECKS: dict[str, Any] = {
    "policies": [
        {"name": "no_deletion", "forbid": {"tool": "delete_customer"}},
        {"name": "tells_the_customer", "require": {"tool": "notify"}, "safety": False},
    ],
    "output": [
        {"name": "reply_is_json", "json": "strict"},
        {"name": "reply_is_valid", "schema": {"type": "object"}},
        {"name": "reply_says_enough", "fields": ["status"]},
        {"name": "keeps_secrets", "no_secret": True},
        {"name": "in_english", "language": "en"},
        {"name": "no_promises", "banned": ["guaranteed"], "safety": True},
    ],
}


def spec_of(agent: str = "shop", **written: Any) -> QualitySpec:
    return grading_of(TracegradeSettings.model_validate(written))("p", agent).quality


def test_what_nobody_wrote_is_version_1_of_the_score() -> None:
    assert spec_of() == QualitySpec(alarming=ALARMING)


def test_policies_and_the_secrets_check_are_safety_and_the_form_of_answers_is_schema_unless_it_is_written_otherwise() -> None:
    spec = spec_of(agents={"default": {"checks": CHECKS}})
    assert spec.safety_checks == ("keeps_secrets", "no_deletion", "no_promises")
    assert spec.schema_checks == ("reply_is_json", "reply_is_valid", "reply_says_enough")


def test_whether_a_check_is_of_safety_changes_no_contract() -> None:
    written = {**CHECKS, "policies": [{**one, "safety": True} for one in CHECKS["policies"]]}
    made = [
        {
            check.name: check.contract
            for check in grading_of(TracegradeSettings.model_validate({"agents": {"default": {"checks": one}}}))("p", "a").checks
        }
        for one in (CHECKS, written)
    ]
    assert made[0] == made[1]


def test_only_judgments_that_may_decide_count_each_on_its_scale() -> None:
    assert spec_of().judged == {}
    decided = spec_of(judge={"uncalibrated": "decide"})
    assert set(decided.judged.values()) == {(1, 5)}
    assert len(decided.judged) == 5


def test_everything_can_be_written_and_an_agent_of_its_own_takes_nothing_from_the_top() -> None:
    quality = {
        "weights": {
            "pass_rate": 1,
            "safety": "0.50",
            "judge_schema": 0,
            "latency_cost": "0.1",
            "judge_share": 1,
            "latency_share": 0,
        },
        "latency_best": "500ms",
        "latency_worst": "2s",
        "budget_usd": "0.050",
        "policy_dimension": "safe_refusal",
        "flags": {"n": 3, "pass_rate": "0.5"},
        "metrics": {"calm": {"dimension": "loops", "weight": "0.2"}},
    }
    written: dict[str, Any] = {"quality": quality, "agents": {"desk": {"quality": {"budget_usd": 1}}}}
    spec = spec_of("shop", **written)
    assert (spec.pass_weight, spec.safety_weight, spec.judge_share) == (Decimal(1), Decimal("0.5"), Decimal(1))
    assert (spec.latency_best_ms, spec.latency_worst_ms, spec.budget_usd) == (Decimal(500), Decimal(2000), Decimal("0.05"))
    assert (spec.least_n, spec.least_pass_rate, spec.policy_dimension) == (3, Decimal("0.5"), "safe_refusal")
    assert [(one.name, one.dimension, one.measure, one.weight) for one in spec.metrics] == [
        ("calm", "loops", "rate", Decimal("0.2"))
    ]
    desk = spec_of("desk", **written)
    assert (desk.budget_usd, desk.pass_weight) == (Decimal(1), Decimal("0.5"))


def test_the_same_policy_has_the_same_hash_however_its_numbers_are_written() -> None:
    made = [canonical_hash(spec_of(quality={"budget_usd": text})) for text in ("0.05", "0.050", 0.05)]
    assert len(set(made)) == 1
    assert made[0] != canonical_hash(spec_of(quality={"budget_usd": "0.06"}))
    kept = msgspec.json.decode(msgspec.json.encode(spec_of()), type=QualitySpec)
    assert canonical_hash(kept) == canonical_hash(spec_of())


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"weights": {"pass_rate": 0, "safety": 0, "judge_schema": 0, "latency_cost": 0}}, "every weight is 0"),
        ({"latency_best": "8s"}, "latency_worst is not above latency_best"),
        ({"weights": {"pass_rate": -1}}, "greater than or equal to 0"),
        ({"metrics": {"calm": {"dimension": "loops", "weight": 0}}}, "greater than 0"),
    ],
)
def test_what_cannot_be_weighed_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        TracegradeSettings.model_validate({"quality": wrong})
