-- Runs are looked for by the tools that they called, among a million of them: the names apart from what they were called with.
-- The engine reads them off tool_calls, in rows from before too.

ALTER TABLE runs ADD COLUMN IF NOT EXISTS called Array(LowCardinality(String))
    DEFAULT arrayDistinct(JSONExtract(tool_calls, 'Array(Tuple(name String))').name);
ALTER TABLE runs MATERIALIZE COLUMN called;
