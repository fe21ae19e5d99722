"""What is asked of the judge's calls as a whole: what they are to be charged, what they cost by day, what endpoints take."""

from typing import Any, Final

import msgspec

from pipeline.judges.ability import Ability, Form, Limit
from sinks.clickhouse.connection import Database
from sinks.clickhouse.rows import insert, instant, ns

_CHARGED: Final = """
SELECT sum(coalesce(cost_usd, reserved_usd) + lost_usd) AS usd
FROM judge_votes FINAL
WHERE project = {project:String} AND at >= fromUnixTimestamp64Nano({since:Int64}) AND at < fromUnixTimestamp64Nano({until:Int64})
    AND bucket % {partitions:UInt32} = {partition:UInt32}
"""
# Names that are both a column and a sum of it: the column is always v's.
_COSTS: Final = """
SELECT project, toString(toDate(v.at)) AS day, dimension, model,
    count() AS calls,
    countIf(v.state = 'reply') AS answered,
    countIf(v.state = 'failed') AS failed,
    sum(v.lost) AS lost,
    sumOrNull(v.input_tokens) AS input_tokens,
    sumOrNull(v.output_tokens) AS output_tokens,
    sumOrNull(v.cost_usd) AS cost_usd,
    sum(if(v.cost_usd IS NULL, v.reserved_usd, 0) + v.lost_usd) AS unsure_usd,
    countIf(v.state = 'reply' AND v.cost_usd IS NULL) AS unpriced
FROM judge_votes AS v FINAL
WHERE project = {project:String}
GROUP BY project, day, dimension, model
ORDER BY day DESC, dimension, model
LIMIT {limit:UInt32}
"""
_ENDPOINT: Final = "SELECT * FROM judge_endpoints FINAL WHERE base_url = {base_url:String} AND model = {model:String}"


class DayCost(msgspec.Struct, frozen=True):
    """What the calls about one dimension came to in one day of UTC.

    ``cost_usd`` is of the calls whose cost is known, None where none is; ``unpriced`` were answered and have no known cost.
    ``lost`` calls were made and their answers never kept; ``unsure_usd`` is the most that these and unpriced ones can have cost.
    """

    project: str
    day: str
    dimension: str
    model: str
    calls: int
    answered: int
    failed: int
    lost: int
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    unsure_usd: float
    unpriced: int


class KnownEndpoint(msgspec.Struct, frozen=True):
    """What an endpoint was found to take for a model, and when."""

    ability: Ability
    learned_ns: int


def charged(database: Database, project: str, since_ns: int, until_ns: int, partition: int, partitions: int) -> float:
    """Return the dollars to be charged for a project's calls in a time, of one partition (:class:`pipeline.judges.purse.Charges`)."""
    named = {"project": project, "since": since_ns, "until": until_ns, "partition": partition, "partitions": partitions}
    return float(database.query(_CHARGED, named)[0]["usd"] or 0.0)


def day_costs(database: Database, project: str, limit: int) -> list[DayCost]:
    """Return what a project's calls came to by day and dimension, the latest day first."""
    return [DayCost(**row) for row in database.query(_COSTS, {"project": project, "limit": limit})]


def endpoint(database: Database, base_url: str, model: str) -> KnownEndpoint | None:
    """Return what was found out about an endpoint; None where nobody asked it yet."""
    rows: list[dict[str, Any]] = database.query(_ENDPOINT, {"base_url": base_url, "model": model})
    if not rows:
        return None
    row = rows[0]
    ability = Ability(Form(row["form"]), Limit(row["token_limit"]), row["seed"], row["temperature"], row["usage"])
    return KnownEndpoint(ability, ns(row["learned_at"]))


def keep_endpoint(database: Database, base_url: str, model: str, ability: Ability, at_ns: int) -> None:
    """Remember what an endpoint takes."""
    row = {
        "base_url": base_url,
        "model": model,
        "form": ability.form.value,
        "token_limit": ability.limit.value,
        "seed": ability.seed,
        "temperature": ability.temperature,
        "usage": bool(ability.usage),
        "learned_at": instant(at_ns),
    }
    insert(database, "judge_endpoints", [row])
