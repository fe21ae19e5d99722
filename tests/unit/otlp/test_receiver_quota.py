"""Quotas: averages hold, floods are not everybody's, and nothing is refused for ever."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.otlp.quota import BURST_S, Bucket, QuotaError, Quotas
from pipeline.config.receiver import QuotaSettings
from pipeline.model.time import SECOND

NOW = 1_790_000_000 * SECOND


def _at(seconds: float) -> int:
    return NOW + round(seconds * SECOND)


def test_a_bucket_gives_what_its_rate_says_and_ten_seconds_of_it_at_once() -> None:
    bucket = Bucket(100, NOW)
    bucket.take(100 * BURST_S, NOW)
    assert bucket.wait(NOW) == pytest.approx(1 / 100)
    assert bucket.wait(_at(0.5)) == 0.0
    bucket.take(50, _at(0.5))
    assert bucket.wait(_at(0.5)) > 0


def test_a_request_larger_than_a_whole_bucket_is_admitted_and_paid_back() -> None:
    bucket = Bucket(100, NOW)
    assert bucket.wait(NOW) == 0.0
    bucket.take(100_000, NOW)
    wait = bucket.wait(NOW)
    assert wait == pytest.approx(990, rel=0.01)
    assert bucket.wait(_at(wait - 1)) > 0
    assert bucket.wait(_at(wait)) == 0.0


def test_a_pause_saves_up_no_more_than_a_burst() -> None:
    bucket = Bucket(100, NOW)
    bucket.take(100 * BURST_S, _at(3600))
    assert bucket.wait(_at(3600)) > 0


def test_a_clock_that_is_set_back_gives_nothing_and_blocks_nothing() -> None:
    bucket = Bucket(100, NOW)
    bucket.take(100 * BURST_S + 50, NOW)
    assert bucket.wait(_at(-3600)) > 0
    assert bucket.wait(_at(-3599)) == 0.0


@given(
    st.lists(st.tuples(st.integers(1, 5_000), st.floats(0, 5)), min_size=1, max_size=60),
    st.integers(1, 1_000),
)
def test_whatever_is_sent_the_average_holds_to_within_a_burst_and_a_request(sent: list[tuple[int, float]], rate: int) -> None:
    bucket, now, taken, largest = Bucket(rate, NOW), NOW, 0, 0
    for amount, pause in sent:
        now += round(pause * SECOND)
        if bucket.wait(now) == 0.0:
            bucket.take(amount, now)
            taken, largest = taken + amount, max(largest, amount)
    assert taken <= rate * ((now - NOW) / SECOND + BURST_S) + largest + 1


@given(st.lists(st.integers(1, 5_000), min_size=1, max_size=20), st.integers(1, 1_000))
def test_who_waits_as_long_as_it_is_told_is_admitted(sent: list[int], rate: int) -> None:
    bucket, now = Bucket(rate, NOW), NOW
    for amount in sent:
        now += int(bucket.wait(now) * SECOND) + 1
        assert bucket.wait(now) == 0.0
        bucket.take(amount, now)


def _quotas(**by_project: QuotaSettings) -> Quotas:
    return Quotas(by_project)


def test_each_project_has_buckets_of_its_own() -> None:
    quotas = _quotas(default=QuotaSettings(spans_per_s=10), vip=QuotaSettings(spans_per_s=1000))
    for project in ("a", "vip"):
        quotas.take(project, "spans", 200, NOW)
    quotas.check("vip", NOW)
    quotas.check("b", NOW)
    with pytest.raises(
        QuotaError, match=r"project 'a' has sent more than its quota of spans a second; send again later"
    ) as refusal:
        quotas.check("a", NOW)
    assert refusal.value.retry_after == pytest.approx(10.1)
    quotas.check("a", _at(10.2))


def test_bytes_and_spans_are_limited_apart() -> None:
    quotas = _quotas(a=QuotaSettings(bytes_per_s=100))
    quotas.take("a", "spans", 1_000_000, NOW)
    quotas.check("a", NOW)
    quotas.take("a", "bytes", 1001, NOW)
    with pytest.raises(QuotaError, match="quota of bytes"):
        quotas.check("a", NOW)


def test_without_settings_nothing_is_limited() -> None:
    quotas = _quotas()
    quotas.take("a", "bytes", 10**12, NOW)
    quotas.check("a", NOW)
