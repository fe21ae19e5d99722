-- What checks read of record sources: a fact of its trace, as judgments are. The table evidence of migration 1 was never written, and cannot
-- hold it: its key begins with the run, and the facts of a trace are found by the trace. It stays empty, for a worker may drop nothing.
-- contract names the source and how it is asked, calls the calls of the run that it is asked about.

CREATE TABLE IF NOT EXISTS record_reads (
    project LowCardinality(String),
    trace_id String,
    evidence_id String,
    bucket UInt16,
    run_id String,
    source LowCardinality(String),
    contract LowCardinality(String),
    source_key String,
    calls String,
    found LowCardinality(String),
    body String CODEC(ZSTD(1)),
    error String,
    read_at DateTime64(9, 'UTC'),
    content_hash String,
    -- The first answer to a question is the one that counts.
    earliness UInt64,
    INDEX read_at_range read_at TYPE minmax GRANULARITY 1
) ENGINE = ReplacingMergeTree(earliness)
ORDER BY (project, trace_id, evidence_id)
SETTINGS non_replicated_deduplication_window = 1000, materialize_ttl_recalculate_only = 1;
