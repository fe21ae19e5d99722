"""Time that the load of a machine does not lengthen, for bounds that a product is held to.

Tests run three at a time: what the clock says there is up to three times what a test takes by itself. The clock alone decides in
``integration/test_worst_requests.py``, which has the machine for itself.
"""

import time


class Stopwatch:
    """Counts from when it is made."""

    def __init__(self) -> None:
        self._worked, self._began = time.process_time(), time.perf_counter()

    @property
    def seconds(self) -> float:
        """CPU seconds of this process; and a third of the clock's, so that what waits instead of working is found out, too."""
        return max(time.process_time() - self._worked, (time.perf_counter() - self._began) / 3)
