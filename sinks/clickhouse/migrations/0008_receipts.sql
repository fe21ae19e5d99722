-- When the facts of a trace came first, added up in ns. Less of it with as many facts: one of them turned out to have come earlier than
-- the version knew. 0 in rows from before, which stay as they are.

ALTER TABLE traces ADD COLUMN IF NOT EXISTS receipts UInt128;

-- Up to when the owner of a partition of agents derived what is due from the rows: a start looks at what was stored since.
CREATE TABLE IF NOT EXISTS gate_clocks (
    partition UInt32,
    derived_at DateTime64(9, 'UTC')
) ENGINE = ReplacingMergeTree(derived_at)
ORDER BY (partition)
SETTINGS non_replicated_deduplication_window = 1000;
