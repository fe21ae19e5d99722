-- What a run cost by the price table of that version, exactly; or the reason why that is not known. cost_usd is what senders report, as it
-- was before, and counts nowhere. task_kind is what cohorts compare efficiency by. hand_offs is JSON. Rows from before know none of it.

ALTER TABLE runs ADD COLUMN IF NOT EXISTS cost Nullable(Decimal(38, 12));
ALTER TABLE runs ADD COLUMN IF NOT EXISTS cost_unknown String;
ALTER TABLE runs ADD COLUMN IF NOT EXISTS cost_prices LowCardinality(String);
ALTER TABLE runs ADD COLUMN IF NOT EXISTS task_kind LowCardinality(String);
ALTER TABLE runs ADD COLUMN IF NOT EXISTS retries UInt32;
ALTER TABLE runs ADD COLUMN IF NOT EXISTS hand_offs String DEFAULT '[]' CODEC(ZSTD(1));
