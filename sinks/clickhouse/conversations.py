"""Conversations, read from the latest versions of their runs."""

from typing import Final

from pipeline.model.conversation import EXCERPT, Conversation, ConversationDetail, ConversationTurn, Outcomes
from sinks.clickhouse.connection import Database, Row
from sinks.clickhouse.line import Line
from sinks.clickhouse.rows import dollars, ns
from sinks.clickhouse.run_rows import cohort_of

# Lists never read a transcript, a request or an answer (reliability R59).
_ROLL_UP: Final = """
SELECT conversation_id, count() AS runs,
    arraySort(arrayDistinct(arrayConcat(groupUniqArray(toString(agent)), groupUniqArrayArray(agents)))) AS everybody,
    countIf(verdict = 'pass') AS passed, countIf(verdict = 'fail') AS failed,
    countIf(verdict = 'insufficient_evidence') AS insufficient_evidence, countIf(verdict = 'grader_error') AS grader_error,
    countIf(verdict IS NULL) AS pending,
    sumOrNull(input_tokens) AS given, sumOrNull(output_tokens) AS taken, sumOrNull(cost) AS spent,
    countIf(input_tokens IS NULL AND output_tokens IS NULL) AS without_tokens, countIf(cost IS NULL) AS without_cost,
    min(started_at) AS first_at, max(ended_at) AS last_at
FROM runs FINAL
"""
_LATEST: Final = f"""{_ROLL_UP}
WHERE project = {{project:String}} AND state = 'live' AND conversation_id != ''
GROUP BY conversation_id
HAVING {{agent:String}} = '' OR has(everybody, {{agent:String}})
ORDER BY last_at DESC, conversation_id
LIMIT {{limit:UInt64}}
"""
# A run may have been in another conversation before, so all versions of those that ever were in this one are merged, and no others.
_OF_ONE: Final = """
PREWHERE (project, trace_id, run_id) IN (
    SELECT project, trace_id, run_id FROM runs WHERE project = {project:String} AND conversation_id = {conversation:String}
)
WHERE conversation_id = {conversation:String} AND state = 'live'
"""
_ONE: Final = f"{_ROLL_UP} {_OF_ONE} GROUP BY conversation_id"
_TURNS: Final = """
SELECT run_id, trace_id, agent, agent_version, environment, substringUTF8(request, 1, {excerpt:UInt64}) AS asked,
    substringUTF8(answer, 1, {excerpt:UInt64}) AS answered, ended, verdict, verdict_reason, class, class_reason, tool_call_count, agents,
    input_tokens, output_tokens, cost, started_at, ended_at
FROM runs FINAL
{of_one}
ORDER BY started_at DESC, run_id DESC
LIMIT {limit:UInt64}
""".replace("{of_one}", _OF_ONE)


class ConversationTable:
    """What the live runs of each conversation add up to."""

    def __init__(self, reads: Line) -> None:
        self._reads = reads

    async def latest(self, project: str, limit: int = 100, agent: str = "") -> list[Conversation]:
        """Return the conversations that ended last, of all agents or of those that one took part in."""
        return await self._reads.call(_latest, project, limit, agent)

    async def one(self, project: str, conversation_id: str, limit: int = 1000) -> ConversationDetail | None:
        """Return a conversation with its last turns, None where no live run names it."""
        return await self._reads.call(_one, project, conversation_id, limit)


def _latest(database: Database, project: str, limit: int, agent: str) -> list[Conversation]:
    return [_conversation_of(row) for row in database.query(_LATEST, {"project": project, "limit": limit, "agent": agent})]


def _one(database: Database, project: str, conversation_id: str, limit: int) -> ConversationDetail | None:
    parameters = {"project": project, "conversation": conversation_id}
    found = database.query(_ONE, parameters) if conversation_id else []
    if not found:
        return None
    turns = database.query(_TURNS, {**parameters, "limit": limit, "excerpt": EXCERPT})
    return ConversationDetail(_conversation_of(found[0]), tuple(_turn_of(row) for row in reversed(turns)))


def _conversation_of(row: Row) -> Conversation:
    return Conversation(
        id=row["conversation_id"],
        runs=row["runs"],
        agents=tuple(row["everybody"]),
        outcomes=Outcomes(**{name: row[name] for name in Outcomes.__struct_fields__}),
        input_tokens=row["given"],
        output_tokens=row["taken"],
        cost_usd=None if row["without_cost"] else dollars(row["spent"]),
        without_tokens=row["without_tokens"],
        without_cost=row["without_cost"],
        start_ns=ns(row["first_at"]),
        end_ns=ns(row["last_at"]),
    )


def _turn_of(row: Row) -> ConversationTurn:
    return ConversationTurn(
        run_id=row["run_id"],
        trace_id=row["trace_id"],
        cohort=cohort_of(row),
        request=row["asked"],
        answer=row["answered"],
        ended=row["ended"],
        verdict=row["verdict"],
        reason=row["verdict_reason"],
        run_class=row["class"],
        class_reason=row["class_reason"],
        tool_calls=row["tool_call_count"],
        agents=tuple(row["agents"]),
        input_tokens=row["input_tokens"],
        output_tokens=row["output_tokens"],
        cost_usd=dollars(row["cost"]),
        start_ns=ns(row["started_at"]),
        end_ns=ns(row["ended_at"]),
    )
