"""Search: a law as a function that looks for what breaks it, always in the same way, and stops at the first thing that does."""

from collections.abc import Callable

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st


def searched(law: Callable[[st.DataObject], None], most: int) -> Callable[[], None]:
    """Return a search of at most so many examples. What it finds is made no smaller: that it finds something is all that is asked."""
    search = settings(
        max_examples=most,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    return search(given(st.data())(law))
