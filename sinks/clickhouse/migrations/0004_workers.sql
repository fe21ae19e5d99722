-- Several workers share one server: each reads back what concerns it, and only what is new.

ALTER TABLE notifications ADD COLUMN IF NOT EXISTS agent LowCardinality(String) DEFAULT '';
ALTER TABLE traces ADD COLUMN IF NOT EXISTS inserted_at DateTime64(9, 'UTC') DEFAULT now64(9, 'UTC');

-- Keys are in the order of random trace ids, so every part holds a stretch of time and nothing else tells old parts from new ones.
ALTER TABLE spans ADD INDEX IF NOT EXISTS received_at_range received_at TYPE minmax GRANULARITY 1;
ALTER TABLE judgments ADD INDEX IF NOT EXISTS judged_at_range judged_at TYPE minmax GRANULARITY 1;
ALTER TABLE feedback ADD INDEX IF NOT EXISTS received_at_range received_at TYPE minmax GRANULARITY 1;
ALTER TABLE runs ADD INDEX IF NOT EXISTS inserted_at_range inserted_at TYPE minmax GRANULARITY 1;
ALTER TABLE traces ADD INDEX IF NOT EXISTS inserted_at_range inserted_at TYPE minmax GRANULARITY 1;

-- Parts that are there already get theirs in the background. Traces from before their insertion was kept are taken for new until then.
ALTER TABLE spans MATERIALIZE INDEX received_at_range;
ALTER TABLE judgments MATERIALIZE INDEX judged_at_range;
ALTER TABLE feedback MATERIALIZE INDEX received_at_range;
ALTER TABLE runs MATERIALIZE INDEX inserted_at_range;
ALTER TABLE traces MATERIALIZE INDEX inserted_at_range;
