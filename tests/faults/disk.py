"""Disk: one that is small, and can be filled and given room again. It takes root, as mounting does."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

BALLAST: Final = "ballast"
_BLOCK: Final = b"\0" * 65_536


class Disk:
    """A file system in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fill(self) -> None:
        """Take every byte that is left."""
        with (self.path / BALLAST).open("ab", buffering=0) as file:
            size = len(_BLOCK)
            while size:
                try:
                    file.write(_BLOCK[:size])
                except OSError:
                    size //= 2

    def make_room(self, mib: int) -> None:
        """Grow it, as an operator would, and leave what filled it."""
        subprocess.run(["mount", "-o", f"remount,size={mib}m", str(self.path)], check=True, capture_output=True)

    @property
    def free_mib(self) -> int:
        return shutil.disk_usage(self.path).free >> 20


@contextmanager
def a_small_disk(path: Path, mib: int) -> Iterator[Disk]:
    """A disk of this size at a path, for as long as the context lasts. Where nobody may mount, the test is skipped and says why."""
    path.mkdir(parents=True, exist_ok=True)
    asked = ["mount", "-t", "tmpfs", "-o", f"size={mib}m", "tmpfs", str(path)]
    done = subprocess.run(asked, capture_output=True, text=True, check=False) if os.geteuid() == 0 else None
    if done is None or done.returncode:
        pytest.skip(f"no small disk can be mounted here: {done.stderr.strip() if done else 'this user is not root'}")
    try:
        yield Disk(path)
    finally:
        subprocess.run(["umount", "-l", str(path)], check=False, capture_output=True)
