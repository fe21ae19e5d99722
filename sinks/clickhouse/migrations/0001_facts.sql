-- Facts: inserted before anything is folded. Replacing by a version makes a redelivered fact the same row.
-- Every key starts with the project. Times are UTC; DateTime64(9) holds the nanoseconds that OTLP sends.
-- kind and status_code are whatever number the sender wrote: an enum of a later OTLP version must not be lost.

CREATE TABLE IF NOT EXISTS spans (
    project LowCardinality(String),
    trace_id String,
    span_id String,
    content_hash String,
    bucket UInt16,
    parent_id String,
    name String,
    kind Int32,
    started_at DateTime64(9, 'UTC'),
    ended_at DateTime64(9, 'UTC'),
    received_at DateTime64(9, 'UTC'),
    -- Replacing keeps the row of the greatest version: this one grows as received_at shrinks, so the least seen stays.
    earliness UInt64,
    status_code Int32,
    status_message String CODEC(ZSTD(1)),
    attributes String CODEC(ZSTD(1)),
    events String CODEC(ZSTD(1)),
    links String CODEC(ZSTD(1)),
    resource String CODEC(ZSTD(1)),
    scope_name LowCardinality(String),
    scope_version LowCardinality(String),
    trace_state String,
    flags UInt32,
    dropped UInt64
) ENGINE = ReplacingMergeTree(earliness)
ORDER BY (project, trace_id, span_id, content_hash)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS judgments (
    project LowCardinality(String),
    trace_id String,
    judgment_id String,
    bucket UInt16,
    run_id String,
    run_version UInt64,
    transcript_hash String,
    contract String,
    dimension LowCardinality(String),
    outcome LowCardinality(String),
    score Nullable(Float64),
    unresolved LowCardinality(String),
    reason String CODEC(ZSTD(1)),
    quote String CODEC(ZSTD(1)),
    model LowCardinality(String),
    votes UInt16,
    input_tokens UInt64,
    output_tokens UInt64,
    cost_usd Nullable(Float64),
    flags Array(String),
    judged_at DateTime64(9, 'UTC'),
    -- The first answer to a question is the one that counts.
    earliness UInt64
) ENGINE = ReplacingMergeTree(earliness)
ORDER BY (project, trace_id, judgment_id)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS feedback (
    project LowCardinality(String),
    trace_id String,
    feedback_id String,
    bucket UInt16,
    run_id String,
    value Float64,
    author String,
    comment String CODEC(ZSTD(1)),
    received_at DateTime64(9, 'UTC'),
    earliness UInt64
) ENGINE = ReplacingMergeTree(earliness)
ORDER BY (project, trace_id, feedback_id)
SETTINGS non_replicated_deduplication_window = 1000;

-- What people say of a run, and what checks read. Written by later releases of the ways in; read from the first day.
CREATE TABLE IF NOT EXISTS labels (
    project LowCardinality(String),
    run_id String,
    dimension LowCardinality(String),
    label_id String,
    trace_id String,
    outcome LowCardinality(String),
    score Nullable(Float64),
    author String,
    reason String,
    created_at DateTime64(9, 'UTC'),
    version UInt64
) ENGINE = ReplacingMergeTree(version)
ORDER BY (project, run_id, dimension, label_id)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS evidence (
    project LowCardinality(String),
    run_id String,
    source LowCardinality(String),
    evidence_id String,
    body String CODEC(ZSTD(1)),
    error String,
    read_at DateTime64(9, 'UTC'),
    version UInt64
) ENGINE = ReplacingMergeTree(version)
ORDER BY (project, run_id, source, evidence_id)
SETTINGS non_replicated_deduplication_window = 1000;
