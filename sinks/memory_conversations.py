"""The conversations of a store in memory."""

from collections import defaultdict
from collections.abc import Callable, Iterable

from pipeline.model.conversation import Conversation, ConversationDetail, ConversationTurn, roll_up, turn_of
from pipeline.model.version import RunVersion


class MemoryConversations:
    """What the live runs of each conversation add up to."""

    def __init__(self, live_runs: Callable[[], Iterable[RunVersion]]) -> None:
        self._live_runs = live_runs

    async def latest(self, project: str, limit: int = 100, agent: str = "") -> list[Conversation]:
        """Return the conversations that ended last, of all agents or of those that one took part in."""
        every = [roll_up(name, turns) for name, turns in self._turns(project).items()]
        wanted = [one for one in every if not agent or agent in one.agents]
        return sorted(wanted, key=lambda one: (-one.end_ns, one.id))[:limit]

    async def one(self, project: str, conversation_id: str, limit: int = 1000) -> ConversationDetail | None:
        """Return a conversation with its last turns, None where no live run names it."""
        turns = sorted(self._turns(project).get(conversation_id, []), key=lambda one: (one.start_ns, one.run_id))
        return ConversationDetail(roll_up(conversation_id, turns), tuple(turns[-limit:])) if turns else None

    def _turns(self, project: str) -> dict[str, list[ConversationTurn]]:
        found: defaultdict[str, list[ConversationTurn]] = defaultdict(list)
        for version in self._live_runs():
            if version.run.project == project and version.run.conversation_id:
                found[version.run.conversation_id].append(turn_of(version))
        return found
