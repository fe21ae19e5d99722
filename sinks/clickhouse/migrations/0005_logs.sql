-- Log records of traces, such as dialects write beside their spans: facts as spans are.
-- body is JSON, as attributes are. position is the order of records to which their sender gave one time.

CREATE TABLE IF NOT EXISTS log_records (
    project LowCardinality(String),
    trace_id String,
    span_id String,
    content_hash String,
    bucket UInt16,
    event_name LowCardinality(String),
    happened_at DateTime64(9, 'UTC'),
    received_at DateTime64(9, 'UTC'),
    earliness UInt64,
    position UInt32,
    severity Int32,
    body String CODEC(ZSTD(1)),
    attributes String CODEC(ZSTD(1)),
    resource String CODEC(ZSTD(1)),
    scope_name LowCardinality(String),
    scope_version LowCardinality(String),
    dropped UInt64,
    INDEX received_at_range received_at TYPE minmax GRANULARITY 1
) ENGINE = ReplacingMergeTree(earliness)
ORDER BY (project, trace_id, span_id, content_hash)
SETTINGS non_replicated_deduplication_window = 1000;

-- Feedback may name a conversation instead of a trace.
ALTER TABLE runs ADD INDEX IF NOT EXISTS conversation_id_bloom conversation_id TYPE bloom_filter GRANULARITY 1;
ALTER TABLE runs MATERIALIZE INDEX conversation_id_bloom;
