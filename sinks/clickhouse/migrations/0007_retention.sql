-- Rows expire (sinks/clickhouse/retention.py says which, and when). What is folded expires by when it was stored: a later version is stored
-- later, so no version outlives the one that superseded it.

-- When a trace began must be known after its spans are gone.
ALTER TABLE traces ADD COLUMN IF NOT EXISTS first_received_at DateTime64(9, 'UTC') DEFAULT closed_at;
ALTER TABLE places ADD COLUMN IF NOT EXISTS inserted_at DateTime64(9, 'UTC') DEFAULT now64(9, 'UTC');

-- A retention that is changed is noted in the parts that are there, and does not rewrite them.
ALTER TABLE spans MODIFY SETTING materialize_ttl_recalculate_only = 1;
ALTER TABLE log_records MODIFY SETTING materialize_ttl_recalculate_only = 1;
ALTER TABLE judgments MODIFY SETTING materialize_ttl_recalculate_only = 1;
ALTER TABLE feedback MODIFY SETTING materialize_ttl_recalculate_only = 1;
ALTER TABLE transcripts MODIFY SETTING materialize_ttl_recalculate_only = 1;
ALTER TABLE judge_votes MODIFY SETTING materialize_ttl_recalculate_only = 1;
ALTER TABLE traces MODIFY SETTING materialize_ttl_recalculate_only = 1;
ALTER TABLE places MODIFY SETTING materialize_ttl_recalculate_only = 1;
ALTER TABLE runs MODIFY SETTING materialize_ttl_recalculate_only = 1;
ALTER TABLE results MODIFY SETTING materialize_ttl_recalculate_only = 1;
