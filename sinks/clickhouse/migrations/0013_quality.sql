-- What a quality score and the four outcomes take: the verdict's row says what its run took, minutes and windows say how many of each outcome.
-- A row from before says nothing of it: NULL, or no run that was timed.

ALTER TABLE results ADD COLUMN IF NOT EXISTS duration_ns Nullable(UInt64);
ALTER TABLE results ADD COLUMN IF NOT EXISTS cost_usd Nullable(Decimal(38, 12));
ALTER TABLE results ADD COLUMN IF NOT EXISTS trouble LowCardinality(Nullable(String));

ALTER TABLE minutes ADD COLUMN IF NOT EXISTS passed Nullable(UInt64);
ALTER TABLE minutes ADD COLUMN IF NOT EXISTS grader_errors Nullable(UInt64);
ALTER TABLE minutes ADD COLUMN IF NOT EXISTS runs UInt64;
ALTER TABLE minutes ADD COLUMN IF NOT EXISTS timed UInt64;
ALTER TABLE minutes ADD COLUMN IF NOT EXISTS duration_ns UInt128;
ALTER TABLE minutes ADD COLUMN IF NOT EXISTS priced UInt64;
ALTER TABLE minutes ADD COLUMN IF NOT EXISTS cost_usd Decimal(38, 12);
ALTER TABLE minutes ADD COLUMN IF NOT EXISTS erring UInt64;
ALTER TABLE minutes ADD COLUMN IF NOT EXISTS alarming UInt64;

ALTER TABLE windows ADD COLUMN IF NOT EXISTS passed Nullable(UInt64);
ALTER TABLE windows ADD COLUMN IF NOT EXISTS grader_errors Nullable(UInt64);

-- Evaluations are found by their agent, and the latest first.
ALTER TABLE evaluations ADD COLUMN IF NOT EXISTS cohort_id String;
ALTER TABLE evaluations ADD COLUMN IF NOT EXISTS agent LowCardinality(String);
ALTER TABLE evaluations ADD COLUMN IF NOT EXISTS agent_version LowCardinality(String);
ALTER TABLE evaluations ADD COLUMN IF NOT EXISTS environment LowCardinality(String);
ALTER TABLE evaluations ADD COLUMN IF NOT EXISTS length_s UInt32;
ALTER TABLE evaluations ADD COLUMN IF NOT EXISTS window_start DateTime64(0, 'UTC');
ALTER TABLE evaluations ADD COLUMN IF NOT EXISTS series LowCardinality(String) DEFAULT 'live';
ALTER TABLE evaluations ADD COLUMN IF NOT EXISTS n UInt64;
ALTER TABLE evaluations ADD COLUMN IF NOT EXISTS score Nullable(UInt8);

-- What a fact said when it was stored: one that was changed by hand is not what its hash says. Empty in rows from before.
ALTER TABLE judgments ADD COLUMN IF NOT EXISTS content_hash String;
ALTER TABLE feedback ADD COLUMN IF NOT EXISTS content_hash String;
