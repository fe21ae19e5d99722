"""Promises 2, 3 and 4 with many owners, whose assignments change at any moment and who may not have noticed."""

from assembly_law import facts
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ownership_law import (
    assert_a_run_that_never_was_is_retracted,
    assert_an_old_version_counts_less,
    assert_ownership_changes_nothing,
    group_schedules,
)

LAWS = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@LAWS
@given(st.data())
def test_any_assignment_at_any_moment_gives_the_rows_of_a_single_owner(data: st.DataObject) -> None:
    records = data.draw(facts())
    partitions = data.draw(st.integers(1, 4))
    assert_ownership_changes_nothing(records, partitions, data.draw(group_schedules(len(records), partitions)))


def test_a_write_that_lands_late_counts_for_no_more_than_it_knew() -> None:
    assert_an_old_version_counts_less()


def test_a_run_that_only_a_former_owner_ever_wrote_is_retracted() -> None:
    assert_a_run_that_never_was_is_retracted()
