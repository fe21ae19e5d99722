"""What a test broker is made of: Java, and Kafka's jars from Maven Central, fetched once into the user's cache folder."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from machine import UnavailableError, cached

POM: Final = Path(__file__).parent / "kafka" / "pom.xml"
OLDEST_JAVA: Final = 17


def jars() -> Path:
    """Return the folder of the broker's jars, fetching them where it is not there.

    Raises:
        UnavailableError: Maven is missing, or did not get them.
    """
    return cached("kafka", POM.read_bytes(), _fetch)


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
