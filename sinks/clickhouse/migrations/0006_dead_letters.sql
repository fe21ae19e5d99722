-- What could not be processed, with all that it takes to send it back; kept for a week after it failed last.

ALTER TABLE dead_letters ADD COLUMN IF NOT EXISTS headers String CODEC(ZSTD(1));
ALTER TABLE dead_letters ADD COLUMN IF NOT EXISTS record_key Nullable(String);
ALTER TABLE dead_letters ADD COLUMN IF NOT EXISTS size UInt64;
ALTER TABLE dead_letters ADD COLUMN IF NOT EXISTS masked Bool;
ALTER TABLE dead_letters ADD COLUMN IF NOT EXISTS buried_at DateTime('UTC') DEFAULT now('UTC');
ALTER TABLE dead_letters MODIFY TTL buried_at + INTERVAL 7 DAY;

-- What became of those that were sent back. It outlives its letter, which would else seem to be new.
CREATE TABLE IF NOT EXISTS dead_letter_replays (
    project LowCardinality(String),
    dead_letter_id String,
    outcome LowCardinality(String),
    detail String,
    replayed_at DateTime64(9, 'UTC'),
    inserted_at DateTime('UTC') DEFAULT now('UTC')
) ENGINE = ReplacingMergeTree
ORDER BY (project, dead_letter_id, replayed_at)
TTL inserted_at + INTERVAL 14 DAY
SETTINGS non_replicated_deduplication_window = 1000;
