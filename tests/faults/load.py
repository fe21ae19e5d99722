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

import msgspec
from faults.ledger import HEAD, Ledger, Sent, request

RETRYABLE: Final = frozenset({429, 502, 503, 504})
"""What an exporter sends again (OTLP specification)."""
ANSWER_S: Final = 40.0
AGAIN_S: Final = 0.3
PATIENCE_S: Final = 300.0
LATE_S: Final = 4.0
"""After so long a run is closed, whatever else goes on."""
WHOLE: Final = (HEAD, 2, 3)


class Refused(Exception):  # noqa: N818 - it is an answer, not an error of ours
    """A collector refused for good what it should have taken."""


class Answer(msgspec.Struct, frozen=True):
    """How one request ended. Times are of the monotonic clock, in seconds."""

    began: float
    ended: float
    status: int
    """0 where there was none."""
    retry_after: str | None
    rejected: int
    said: str


class Sender:
    """Sends spans until they are acknowledged."""

    def __init__(self, url: str, ledger: Ledger) -> None:
        self.url = url
        self.ledger = ledger
        self.answers: Counter[str] = Counter()
        """By status; ``gone`` where a request was taken and not answered, ``refused`` where nobody listened."""
        self.log: list[Answer] = []
        """All of them, but for those where nobody listened."""
        self.requests: list[tuple[Sent, tuple[int, ...]]] = []
        """What was acknowledged, in this order."""
        self.given_up = threading.Event()

    def send(self, sent: Sent, *numbers: int, refused: int = 0) -> None:
        """Send these spans of a trace, as often as it takes, and note them as acknowledged; ``refused`` ones are not to be taken."""
        body = json.dumps(request(sent, numbers, refused)).encode()
        until = time.monotonic() + PATIENCE_S
        while (answer := self._post(body, sent, numbers, refused)) is None or answer.status != http.client.OK:
            if answer is not None and answer.status not in RETRYABLE:
                raise Refused(f"a collector answered {answer}")
            if time.monotonic() > until:
                raise TimeoutError(f"nothing was acknowledged for {PATIENCE_S} s")
            if self.given_up.wait(AGAIN_S):
                raise TimeoutError("the test has failed, and nobody sends any more")
        if answer.rejected != refused:
            raise Refused(f"{answer.rejected} spans were refused, and not {refused}: {answer}")
        self.ledger.answered(len(numbers), refused)
        sent.acknowledged.update(numbers)
        self.requests.append((sent, numbers))

    def between(self, began: float, ended: float) -> list[Answer]:
        """Return the answers to what was asked between two moments."""
        return [one for one in list(self.log) if began <= one.began <= ended]

    def _post(self, body: bytes, sent: Sent, numbers: tuple[int, ...], refused: int) -> Answer | None:
        at, began = urlsplit(self.url), time.monotonic()
        connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=ANSWER_S)
        try:
            connection.request("POST", "/v1/traces", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            said = answer.read().decode(errors="replace")
        except ConnectionRefusedError:
            self.answers["refused"] += 1
            return None
        except (OSError, http.client.HTTPException):
            self.answers["gone"] += 1
            self.ledger.gone(sent, numbers, refused)
            self.log.append(Answer(began, time.monotonic(), 0, None, 0, ""))
            return None
        finally:
            connection.close()
        self.answers[str(answer.status)] += 1
        got = Answer(began, time.monotonic(), answer.status, answer.headers["Retry-After"], _rejected(answer.status, said), said)
        self.log.append(got)
        return got


def _rejected(status: int, said: str) -> int:
    return int(json.loads(said).get("partialSuccess", {}).get("rejectedSpans", 0)) if status == http.client.OK else 0


class Load:
    """Several senders in threads, from the start to the end of its context."""

    def __init__(self, sender: Sender, *, threads: int = 4, traces_per_s: float, seed: int) -> None:
        self._sender = sender
        self._pause = threads / traces_per_s
        self._chances = [random.Random(f"{seed} {one}") for one in range(threads)]
        self._stopped = threading.Event()
        self._failures: list[Exception] = []
        self._numbers = itertools.count()
        self._threads = [
            threading.Thread(target=self._run, args=(chance,), name=f"load-{one}") for one, chance in enumerate(self._chances)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stopped.set()
        if error is not None:
            self._sender.given_up.set()
        for thread in self._threads:
            thread.join()
        if self._failures and error is None:
            raise self._failures[0]

    def _run(self, chance: random.Random) -> None:
        later: list[tuple[float, int, Sent]] = []
        try:
            while not self._stopped.wait(self._pause * chance.uniform(0.5, 1.5)):
                self._one(later)
                while later and later[0][0] < time.monotonic():
                    self._sender.send(heapq.heappop(later)[2], 4)
        except Exception as error:  # noqa: BLE001 - raised where the context ends
            self._failures.append(error)

    def _one(self, later: list[tuple[float, int, Sent]]) -> None:
        """Whole traces, traces in two requests, requests that come twice, spans after their run was closed, and some to be refused."""
        number = next(self._numbers)
        sent = self._sender.ledger.trace(f"agent-{number % 3}")
        if number % 4 == 1:
            self._sender.send(sent, 2, 3)
            self._sender.send(sent, HEAD)
        else:
            self._sender.send(sent, *WHOLE, refused=int(number % 20 == 0))
        if number % 5 == 2:
            self._sender.send(sent, *WHOLE)
        if number % 6 == 3:
            heapq.heappush(later, (time.monotonic() + LATE_S, number, sent))
