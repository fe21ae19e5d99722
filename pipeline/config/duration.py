"""Durations as they are written."""

from pipeline.model.time import DAY, HOUR, MINUTE, SECOND


def spoken_duration(nanoseconds: int) -> str:
    """Return a duration as it is written: 5m, 90s."""
    for unit, name in ((DAY, "d"), (HOUR, "h"), (MINUTE, "m"), (SECOND, "s")):
        if nanoseconds and nanoseconds % unit == 0:
            return f"{nanoseconds // unit}{name}"
    return f"{nanoseconds // (SECOND // 1000)}ms"
