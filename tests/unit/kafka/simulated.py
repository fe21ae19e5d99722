"""An event loop whose clock moves only when there is nothing left to do: a wait of 20 ms is 20 ms to the digit, and takes none."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import msgspec

from collectors.kafka.records import Outgoing


class _Skip(selectors.DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout:
            self.now += timeout
        return super().select(None if timeout is None else 0)


class SimulatedLoop(asyncio.SelectorEventLoop):
    """Time starts at 0."""

    def __init__(self) -> None:
        self._skip = _Skip()
        super().__init__(self._skip)

    def time(self) -> float:
        """Seconds, simulated."""
        return self._skip.now


def simulate(story: Coroutine[Any, Any, None]) -> None:
    """Run to the end in simulated time."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        runner.run(story)


class Sent(msgspec.Struct):
    """A record and when it left."""

    at: float
    outgoing: Outgoing


class Brokers:
    """Takes records; answers after ``rtt`` seconds what ``answer`` says of a record: nothing, or an error."""

    def __init__(self, rtt: float = 0.005, answer: Callable[[Outgoing], Exception | None] = lambda _: None) -> None:
        self.rtt = rtt
        self.answer = answer
        self.sent: list[Sent] = []

    async def send(self, outgoing: Sequence[Outgoing]) -> None:
        """Take records."""
        now = asyncio.get_running_loop().time()
        self.sent += [Sent(now, one) for one in outgoing]
        await asyncio.sleep(self.rtt)
        for one in outgoing:
            error = self.answer(one)
            if error is not None:
                raise error
