-- What a call of the judge may have cost where nobody knows, and how often its answer was lost: the day's budget counts both.
-- bucket is that of (project, run id), as on the judge's topic. Rows from before have bucket 0 and lost nothing.

ALTER TABLE judge_votes ADD COLUMN IF NOT EXISTS bucket UInt16;
ALTER TABLE judge_votes ADD COLUMN IF NOT EXISTS finish_reason LowCardinality(String);
ALTER TABLE judge_votes ADD COLUMN IF NOT EXISTS reserved_usd Float64;
ALTER TABLE judge_votes ADD COLUMN IF NOT EXISTS lost UInt16;
ALTER TABLE judge_votes ADD COLUMN IF NOT EXISTS lost_usd Float64;
ALTER TABLE judge_votes ADD INDEX IF NOT EXISTS at_range at TYPE minmax GRANULARITY 1;

-- What each endpoint was found to take, by trying.
CREATE TABLE IF NOT EXISTS judge_endpoints (
    base_url String,
    model String,
    form LowCardinality(String),
    token_limit LowCardinality(String),
    seed Bool,
    temperature Bool,
    usage Bool,
    learned_at DateTime64(9, 'UTC')
) ENGINE = ReplacingMergeTree(learned_at)
ORDER BY (base_url, model)
SETTINGS non_replicated_deduplication_window = 1000;
