-- Which commit of the code graded a run: beside the contract, and not in its hash. Empty in rows from before.

ALTER TABLE runs ADD COLUMN IF NOT EXISTS revision LowCardinality(String);
ALTER TABLE results ADD COLUMN IF NOT EXISTS revision LowCardinality(String);
