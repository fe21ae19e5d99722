-- What is folded from facts. version = facts * 4 + phase: more knowledge wins, equal knowledge writes equal rows (design section 3).
-- Minutes are DateTime64(0): a replayed end may lie beyond 2106, where DateTime ends.
-- Not partitioned by time: a run can move to another minute, and Replacing never merges across partitions.

CREATE TABLE IF NOT EXISTS traces (
    project LowCardinality(String),
    trace_id String,
    bucket UInt16,
    state LowCardinality(String),
    version UInt64,
    facts UInt64,
    close_reason LowCardinality(String),
    closed_at DateTime64(9, 'UTC')
) ENGINE = ReplacingMergeTree(version)
ORDER BY (project, trace_id)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS runs (
    project LowCardinality(String),
    trace_id String,
    run_id String,
    version UInt64,
    bucket UInt16,
    state LowCardinality(String),
    merged_into String,
    head_span_id String,
    cohort_id String,
    agent LowCardinality(String),
    agent_version LowCardinality(String),
    environment LowCardinality(String),
    minute DateTime64(0, 'UTC'),
    started_at DateTime64(9, 'UTC'),
    ended_at DateTime64(9, 'UTC'),
    first_received_at DateTime64(9, 'UTC'),
    class LowCardinality(String),
    class_reason LowCardinality(String),
    verdict LowCardinality(Nullable(String)),
    verdict_reason String,
    composite_low Nullable(Float64),
    composite_high Nullable(Float64),
    sampling_plan LowCardinality(String),
    sampled Bool,
    inclusion_probability Float64,
    transcript_hash String,
    requested_at Nullable(DateTime64(9, 'UTC')),
    deadline_at Nullable(DateTime64(9, 'UTC')),
    completed Bool,
    converted Bool,
    ended LowCardinality(String),
    error Nullable(String) CODEC(ZSTD(1)),
    conversation_id String,
    request String CODEC(ZSTD(1)),
    answer Nullable(String) CODEC(ZSTD(1)),
    tool_calls String CODEC(ZSTD(1)),
    tools Array(String),
    steps UInt32,
    tool_call_count UInt32,
    model_calls UInt32,
    input_tokens Nullable(UInt64),
    output_tokens Nullable(UInt64),
    models Array(String),
    agents Array(String),
    dialects Array(String),
    flags Array(String),
    failing Bool,
    failing_reasons Array(String),
    inserted_at DateTime64(9, 'UTC') DEFAULT now64(9, 'UTC'),
    -- People and trips name a run without its trace.
    INDEX run_id_bloom run_id TYPE bloom_filter GRANULARITY 1
) ENGINE = ReplacingMergeTree(version)
ORDER BY (project, trace_id, run_id)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS transcripts (
    project LowCardinality(String),
    transcript_hash String,
    body String CODEC(ZSTD(3)),
    inserted_at DateTime64(9, 'UTC') DEFAULT now64(9, 'UTC')
) ENGINE = ReplacingMergeTree
ORDER BY (project, transcript_hash)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS places (
    project LowCardinality(String),
    trace_id String,
    run_id String,
    cohort_id String,
    agent LowCardinality(String),
    agent_version LowCardinality(String),
    environment LowCardinality(String),
    minute DateTime64(0, 'UTC')
) ENGINE = ReplacingMergeTree
ORDER BY (project, trace_id, run_id, cohort_id, minute)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS results (
    project LowCardinality(String),
    cohort_id String,
    minute DateTime64(0, 'UTC'),
    dimension LowCardinality(String),
    run_id String,
    contract LowCardinality(String),
    version UInt64,
    agent LowCardinality(String),
    agent_version LowCardinality(String),
    environment LowCardinality(String),
    trace_id String,
    kind LowCardinality(String),
    outcome LowCardinality(Nullable(String)),
    value Nullable(Float64),
    lower Nullable(Float64),
    upper Nullable(Float64),
    reason String,
    evidence String CODEC(ZSTD(1)),
    authority LowCardinality(String),
    inclusion_probability Float64,
    weight Float64,
    transcript_hash String,
    first_received_at DateTime64(9, 'UTC'),
    series LowCardinality(String) DEFAULT 'live',
    inserted_at DateTime64(9, 'UTC') DEFAULT now64(9, 'UTC'),
    -- What is new since the last look is found without reading what is old.
    INDEX inserted_at_range inserted_at TYPE minmax GRANULARITY 1
) ENGINE = ReplacingMergeTree(version)
ORDER BY (project, cohort_id, minute, dimension, run_id, contract)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS judge_votes (
    project LowCardinality(String),
    run_id String,
    transcript_hash String,
    contract String,
    dimension LowCardinality(String),
    vote UInt16,
    attempt UInt16,
    -- An intent is written before the call, what became of it after: one row in the end.
    state LowCardinality(String),
    raw_reply String CODEC(ZSTD(1)),
    outcome LowCardinality(String),
    score Nullable(Float64),
    reason String CODEC(ZSTD(1)),
    model LowCardinality(String),
    served_model LowCardinality(String),
    fingerprint String,
    input_tokens Nullable(UInt64),
    output_tokens Nullable(UInt64),
    cost_usd Nullable(Float64),
    at DateTime64(9, 'UTC'),
    version UInt64
) ENGINE = ReplacingMergeTree(version)
ORDER BY (project, run_id, transcript_hash, contract, dimension, vote, attempt)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS clocks (
    partition UInt32,
    clock_at DateTime64(9, 'UTC'),
    written_at DateTime64(9, 'UTC')
) ENGINE = ReplacingMergeTree(written_at)
ORDER BY (partition)
SETTINGS non_replicated_deduplication_window = 1000;
