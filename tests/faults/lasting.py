"""How long a fault lasts, and how long it is quiet between two. What is waited for is polled for, with ``serving.eventually``."""

import time


def lasting(seconds: float) -> None:
    """Let what is so now be so for this long; for no time where it is less than none."""
    time.sleep(max(0.0, seconds))
