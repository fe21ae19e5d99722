"""Aside: something that looks on in a thread of its own, while what is looked at works."""

import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Aside(ABC):
    """Looks on while its context lasts. What it fails at is raised where the context ends, unless that ends in an error of its own."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=type(self).__name__.lower())

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()
        if self._failure is not None and error is None:
            raise self._failure

    def _run(self) -> None:
        try:
            self._look_on()
        except Exception as error:  # noqa: BLE001 - raised where the context ends
            self._failure = error

    @abstractmethod
    def _look_on(self) -> None:
        """Look as long as :meth:`_goes_on` says so."""

    def _goes_on(self, every_s: float) -> bool:
        """Wait so long, and say whether the context still lasts."""
        return not self._ended.wait(every_s)
