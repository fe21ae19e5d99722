"""Outside: whoever is told and whoever is asked, in a thread of their own: a pager, a judge, and an endpoint for metrics."""

import asyncio
import threading
from typing import Self

from faults.metered import Metered

from pipeline.apps.demo.receiver import Pager
from pipeline.judges.scripted import Script, ScriptedJudge


class Outside:
    """All of them, while the context lasts."""

    def __init__(self, replies: Script = ()) -> None:
        """``replies`` are the judge's, see :class:`~pipeline.judges.scripted.ScriptedJudge`."""
        self.pager = Pager()
        self.judge = ScriptedJudge(replies)
        self.metered = Metered()
        self._up = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), name="outside")

    async def _serve(self) -> None:
        self._ended = asyncio.Event()
        async with self.pager, self.judge, self.metered:
            self._up.set()
            await self._ended.wait()

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._up.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()
        self._loop.close()
