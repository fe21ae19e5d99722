"""Tests that are collected once, and then run on one mutant after the other, each in a process of its own that was forked before any test ran.

What a test leaves in caches is so not seen by the next mutant, and a mutant costs no more than the tests that touch it.
"""

import gc
import json
import os
import resource
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from hypothesis import Phase, settings
from mutmut.mutation.trampoline import get_mutant_under_test, set_mutant_under_test  # type: ignore[import-not-found] # of its environment
from mutmut.state import state  # type: ignore[import-not-found] # of its environment

SLOWER: Final = 20
"""So many times longer than its tests take may a mutant run, and ``LEAST_S`` besides; what takes longer is found."""
LEAST_S: Final = 5
LONGEST_S: Final = 1.0
"""Tests that take longer are not run on mutants: what no shorter one finds has none that says why it is wrong."""
EXAMPLES: Final = 20
"""Of each law: what it finds, it finds with few. The same ones each time, and none is made smaller, which would take the longest."""
PROCESSES: Final = os.cpu_count() or 1

settings.register_profile(
    "mutants", max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, phases=(Phase.explicit, Phase.generate)
)


class Touched(NamedTuple):
    """A test: the functions that it calls, and the seconds of a processor that it takes."""

    functions: Sequence[str]
    seconds: float


class Trial:
    """A plugin of pytest that does something else with the tests it has collected: ``try_all`` is told by which tests each function is touched."""

    def __init__(self, kept: Path, try_all: Callable[["Trial"], None]) -> None:
        self._kept = kept
        self._try_all = try_all
        self._items: dict[str, pytest.Item] = {}
        self.tests: dict[str, Touched] = {}
        self.tests_of: defaultdict[str, list[str]] = defaultdict(list)
        self.ended = False

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests once as they are, and then on the mutants."""
        if session.testsfailed:
            raise session.Interrupted("not all tests were collected")
        session.config.pluginmanager.unregister(name="terminalreporter")
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        self._items = {item.nodeid: item for item in session.items}
        gc.collect()
        gc.freeze()
        self._learn()
        self._try_all(self)
        self.ended = True
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> None:
        """End the process with the first test that fails: a mutant is found. A report of it would take longer than the tests did."""
        if call.excinfo is None or isinstance(call.excinfo.value, pytest.skip.Exception):
            return
        if get_mutant_under_test() == "stats":
            print(
                "Without a mutant a test fails:", *traceback.format_exception(call.excinfo.value), file=sys.__stderr__, flush=True
            )
        os._exit(1)

    def paths(self, module: str) -> set[Path]:
        """Return the files of the tests that touch a module."""
        touching = {test for function, tests in self.tests_of.items() if function.rpartition(".")[0] == module for test in tests}
        return {self._items[test].path for test in touching}

    def fork(self, mutant: str) -> int:
        """Begin to run on a mutant the tests that touch it, the shortest first; returns the process, whose status is 0 if all passed."""
        tests = self.tests_of[mutant.partition("__mutmut_")[0]]
        most = LEAST_S + SLOWER * int(1 + sum(self.tests[test].seconds for test in tests))

        def run() -> None:
            resource.setrlimit(resource.RLIMIT_CPU, (most, most + 1))
            self._run(mutant, tests)

        return _forked(run)

    def _learn(self) -> None:
        """Find out which functions each test calls, and that all tests pass as long as nothing is broken."""
        parts = [self._kept / f"touched.{number}.json" for number in range(PROCESSES)]
        running = [_forked(partial(self._watch, list(self._items)[number::PROCESSES], part)) for number, part in enumerate(parts)]
        statuses = [os.waitpid(process, 0)[1] for process in running]
        if any(statuses):
            raise pytest.UsageError("the tests do not pass without a mutant")
        self.tests = {test: Touched(*one) for part in parts for test, one in json.loads(part.read_text("utf-8")).items()}
        for test, one in sorted(self.tests.items(), key=lambda entry: entry[1].seconds):
            for function in one.functions if one.seconds <= LONGEST_S else ():
                self.tests_of[function].append(test)

    def _watch(self, tests: Sequence[str], part: Path) -> None:
        learnt = {}
        for test in tests:
            began = time.process_time()
            self._run("stats", [test])
            learnt[test] = sorted(state()._stats), time.process_time() - began
            state()._stats.clear()
        part.write_text(json.dumps(learnt), "utf-8")

    def _run(self, mutant: str, tests: Sequence[str]) -> None:
        set_mutant_under_test(mutant)
        items = [self._items[test] for test in tests]
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)


def _forked(run: Callable[[], None]) -> int:
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        run()
        code = 0
    finally:
        os._exit(code)


def ended(running: dict[int, str]) -> Iterator[tuple[str, bool]]:
    """Wait until one of the processes ends; yields its mutant, and whether every test passed."""
    process, status = os.wait()
    if process in running:
        yield running.pop(process), status == 0
