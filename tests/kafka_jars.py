"""What a test broker is made of: Java, and Kafka's jars from Maven Central, fetched once into the user's cache folder."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

POM: Final = Path(__file__).parent / "kafka" / "pom.xml"
OLDEST_JAVA: Final = 17


class UnavailableError(Exception):
    """No broker can run on this machine: the message says what is missing."""


def jars() -> Path:
    """Return the folder of the broker's jars, fetching them where it is not there; one of several callers fetches.

    Raises:
        UnavailableError: Maven is missing, or did not get them.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tracegrade"
    folder = cache / f"kafka-{hashlib.sha256(POM.read_bytes()).hexdigest()[:16]}"
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "kafka.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # ends with the file, so also with the process
        if not folder.is_dir():
            _fetch(folder)
    return folder


def _fetch(folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise UnavailableError("the broker's jars come by Maven, and there is no mvn; install it (Debian: apt install maven)")
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="kafka-fetching-") as temporary:
        fetched = Path(temporary) / "jars"
        command = [maven, "-q", "-B", "-f", str(POM), "dependency:copy-dependencies", f"-DoutputDirectory={fetched}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode:
            raise UnavailableError(f"Maven did not get the broker's jars: {(done.stdout + done.stderr)[-2000:]}")
        fetched.rename(folder)


def java() -> str:
    """Return the path of a Java that runs Kafka.

    Raises:
        UnavailableError: there is none.
    """
    found = shutil.which("java")
    if found is None:
        raise UnavailableError(
            f"a broker needs Java {OLDEST_JAVA}, and there is no java; install it (Debian: apt install default-jre-headless)"
        )
    said = subprocess.run([found, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    version = re.search(r'version "(\d+)', said)
    if version is None or int(version[1]) < OLDEST_JAVA:
        raise UnavailableError(f"a broker needs Java {OLDEST_JAVA} or newer; {found} says: {said.strip()}")
    return found
