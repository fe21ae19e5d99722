"""Time that the load of a machine does not lengthen, for bounds that a product is held to."""

import time


class Stopwatch:
    """Counts from when it is made."""

    def __init__(self) -> None:
        self._worked, self._began = time.process_time(), time.perf_counter()

    @property
    def seconds(self) -> float:
        """CPU seconds of this process; and a third of the clock's, so that what waits instead of working is found out, too."""
        return max(time.process_time() - self._worked, (time.perf_counter() - self._began) / 3)
