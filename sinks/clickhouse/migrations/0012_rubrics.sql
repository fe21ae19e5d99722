-- What a contract's rubric_hash stands for: the rubric as it was when runs were graded by it, whatever its file says today.

CREATE TABLE IF NOT EXISTS rubrics (
    rubric String,
    name LowCardinality(String),
    rubric_version String,
    body String CODEC(ZSTD(1)),
    inserted_at DateTime64(9, 'UTC') DEFAULT now64(9, 'UTC')
) ENGINE = ReplacingMergeTree
ORDER BY (rubric)
SETTINGS non_replicated_deduplication_window = 1000;
