"""Work, for bounds that a product is held to: the load of a machine hardly lengthens it.

What waits instead of working is not found out here. The clock decides in ``integration/test_worst_requests.py``, which has the machine for
itself.
"""

import time


class Stopwatch:
    """Counts from when it is made."""

    def __init__(self) -> None:
        self._worked = time.process_time()

    @property
    def seconds(self) -> float:
        """CPU seconds of this process, those of all its threads."""
        return time.process_time() - self._worked
