"""Load: agents that report to a collector without pause, whatever happens behind it."""

import heapq
import http.client
import itertools
import json
import random
import threading
import time
from collections import Counter
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

from faults.ledger import HEAD, Ledger, Sent, request

RETRYABLE: Final = frozenset({429, 502, 503, 504})
"""What an exporter sends again (OTLP specification)."""
ANSWER_S: Final = 40.0
AGAIN_S: Final = 0.3
PATIENCE_S: Final = 240.0
LATE_S: Final = 4.0
"""After so long a run is closed, whatever else goes on."""
WHOLE: Final = (HEAD, 2, 3)


class Refused(Exception):  # noqa: N818 - it is an answer, not an error of ours
    """A collector refused for good what it should have taken."""


class Sender:
    """Sends spans until they are acknowledged."""

    def __init__(self, url: str, ledger: Ledger) -> None:
        self.url = url
        self.ledger = ledger
        self.answers: Counter[str] = Counter()
        """By status; ``gone`` where there was none."""

    def send(self, sent: Sent, *numbers: int) -> None:
        """Send these spans of a trace, as often as it takes, and note them as acknowledged."""
        body = json.dumps(request(sent, numbers)).encode()
        until = time.monotonic() + PATIENCE_S
        while (answer := self._post(body)) is None or answer[0] != http.client.OK:
            if answer is not None and answer[0] not in RETRYABLE:
                raise Refused(f"a collector answered {answer}")
            if time.monotonic() > until:
                raise TimeoutError(f"nothing was acknowledged for {PATIENCE_S} s")
            time.sleep(AGAIN_S)
        sent.acknowledged.update(numbers)

    def _post(self, body: bytes) -> tuple[int, str] | None:
        at = urlsplit(self.url)
        connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=ANSWER_S)
        try:
            connection.request("POST", "/v1/traces", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            said = answer.read().decode(errors="replace")
        except (OSError, http.client.HTTPException):
            self.answers["gone"] += 1
            return None
        finally:
            connection.close()
        self.answers[str(answer.status)] += 1
        return answer.status, said


class Load:
    """Several senders in threads, from the start to the end of its context."""

    def __init__(self, sender: Sender, *, threads: int = 4, traces_per_s: float, seed: int = 20261129) -> None:
        self._sender = sender
        self._pause = threads / traces_per_s
        self._chance = random.Random(seed)
        self._stopped = threading.Event()
        self._failures: list[Exception] = []
        self._numbers = itertools.count()
        self._threads = [threading.Thread(target=self._run, name=f"load-{one}") for one in range(threads)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()
        if self._failures and error is None:
            raise self._failures[0]

    def _run(self) -> None:
        later: list[tuple[float, int, Sent]] = []
        try:
            while not self._stopped.wait(self._pause * self._chance.uniform(0.5, 1.5)):
                self._one(later)
                while later and later[0][0] < time.monotonic():
                    self._sender.send(heapq.heappop(later)[2], 4)
        except Exception as error:  # noqa: BLE001 - raised where the context ends
            self._failures.append(error)

    def _one(self, later: list[tuple[float, int, Sent]]) -> None:
        """Whole traces, traces in two requests, requests that come twice, and spans after their run was closed."""
        number = next(self._numbers)
        sent = self._sender.ledger.trace(f"agent-{number % 3}")
        if number % 4 == 1:
            self._sender.send(sent, 2, 3)
            self._sender.send(sent, HEAD)
        else:
            self._sender.send(sent, *WHOLE)
        if number % 5 == 2:
            self._sender.send(sent, *WHOLE)
        if number % 6 == 3:
            heapq.heappush(later, (time.monotonic() + LATE_S, number, sent))
