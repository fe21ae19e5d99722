-- Conversations are above runs, and the parts of a run below it. parts is JSON: what each agent of the run did and spent.
-- feedback is the ids of what was said of the run. A row from before has neither, and its cost is unknown.

ALTER TABLE runs ADD COLUMN IF NOT EXISTS parts String DEFAULT '[]' CODEC(ZSTD(1));
ALTER TABLE runs ADD COLUMN IF NOT EXISTS cost_usd Nullable(Float64);
ALTER TABLE runs ADD COLUMN IF NOT EXISTS feedback Array(String);

-- What is said of a span is about the run that the span is part of.
ALTER TABLE feedback ADD COLUMN IF NOT EXISTS span_id String;
