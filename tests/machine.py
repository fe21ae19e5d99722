"""What real parts take of the machine: their programs, in the user's cache folder; their ports; and their ends."""

import fcntl
import hashlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

HERE: Final = "127.0.0.1"
POLL_S: Final = 0.05
STOP_SECONDS: Final = 30.0


class UnavailableError(Exception):
    """A part cannot run on this machine: the message says what is missing."""


def cached(name: str, made_of: bytes, make: Callable[[Path], None]) -> Path:
    """Return the folder of what is made of this, making it where it is not there; one of several callers makes it.

    ``make`` is given the folder, which has to be there whole or not at all.

    Raises:
        UnavailableError: ``make`` says so.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tracegrade"
    folder = cache / f"{name}-{hashlib.sha256(made_of).hexdigest()[:16]}"
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # ends with the file, so also with the process
            if not folder.is_dir():
                make(folder)
    return folder


def any_free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.socket() as any_port:
        any_port.bind((HERE, 0))
        return int(any_port.getsockname()[1])


def until_ready(
    name: str, process: subprocess.Popen[bytes], ready: Callable[[], bool], tail: Callable[[], str], within_s: float
) -> None:
    """Wait until a process that was started serves.

    Raises:
        RuntimeError: it ended, or does not serve in time; with the end of its log.
    """
    until = time.monotonic() + within_s
    while not ready():
        if process.poll() is not None:
            raise RuntimeError(f"{name} ended at its start; the end of its log:\n{tail()}")
        if time.monotonic() > until:
            raise RuntimeError(f"{name} does not answer after {within_s:.0f} s; the end of its log:\n{tail()}")
        time.sleep(POLL_S)


def end(process: subprocess.Popen[bytes], how: signal.Signals) -> None:
    """Send a signal and wait for the end; where it does not come in time, SIGKILL brings it."""
    process.send_signal(how)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def tail_of(log: Path, lines: int) -> str:
    """Return the end of a log."""
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
