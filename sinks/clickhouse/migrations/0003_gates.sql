-- What runs add up to. Written only by the owner of a (project, agent).

CREATE TABLE IF NOT EXISTS minutes (
    project LowCardinality(String),
    cohort_id String,
    minute DateTime64(0, 'UTC'),
    dimension LowCardinality(String),
    contract LowCardinality(String),
    agent LowCardinality(String),
    agent_version LowCardinality(String),
    environment LowCardinality(String),
    kind LowCardinality(String),
    n UInt64,
    decided UInt64,
    pending UInt64,
    w Float64,
    w2 Float64,
    wy Float64,
    wy2 Float64,
    wp Float64,
    v Float64,
    vy Float64,
    vy2 Float64,
    vp Float64,
    undecided_w Float64,
    undecided_w_lower Float64,
    undecided_w_upper Float64,
    first_received_at DateTime64(9, 'UTC'),
    -- Count and sum of versions of the result rows that this row was made of: both only grow, so their sum orders the versions.
    rows UInt64,
    fingerprint UInt64,
    version UInt64
) ENGINE = ReplacingMergeTree(version)
ORDER BY (project, cohort_id, minute, dimension, contract)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS windows (
    project LowCardinality(String),
    cohort_id String,
    length_s UInt32,
    window_start DateTime64(0, 'UTC'),
    dimension LowCardinality(String),
    contract LowCardinality(String),
    agent LowCardinality(String),
    agent_version LowCardinality(String),
    environment LowCardinality(String),
    kind LowCardinality(String),
    n UInt64,
    decided UInt64,
    pending UInt64,
    n_effective Float64,
    coverage Nullable(Float64),
    mean Nullable(Float64),
    mean_low Nullable(Float64),
    mean_high Nullable(Float64),
    rate Nullable(Float64),
    rate_low Nullable(Float64),
    rate_high Nullable(Float64),
    rate_if_undecided_fail Nullable(Float64),
    rate_if_undecided_pass Nullable(Float64),
    first_received_at DateTime64(9, 'UTC'),
    amended Bool,
    version UInt64
) ENGINE = ReplacingMergeTree(version)
ORDER BY (project, cohort_id, length_s, window_start, dimension, contract)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS gate_states (
    project LowCardinality(String),
    gate LowCardinality(String),
    cohort_id String,
    agent LowCardinality(String),
    agent_version LowCardinality(String),
    environment LowCardinality(String),
    contract LowCardinality(String),
    status LowCardinality(String),
    trip_id String,
    clears UInt32,
    runs UInt64,
    last_window DateTime64(0, 'UTC'),
    last_failure_at DateTime64(9, 'UTC'),
    streak UInt32,
    why String,
    version UInt64
) ENGINE = ReplacingMergeTree(version)
ORDER BY (project, gate, cohort_id)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS trips (
    project LowCardinality(String),
    gate LowCardinality(String),
    cohort_id String,
    trip_id String,
    transition LowCardinality(String),
    run_id String,
    kind LowCardinality(String),
    agent LowCardinality(String),
    agent_version LowCardinality(String),
    environment LowCardinality(String),
    at DateTime64(9, 'UTC'),
    contract LowCardinality(String),
    dimension LowCardinality(String),
    window_start DateTime64(0, 'UTC'),
    value Nullable(Float64),
    threshold Nullable(Float64),
    why String,
    retracted Bool
-- No version: of equal keys the row inserted last stays, and a trip has one writer.
) ENGINE = ReplacingMergeTree
ORDER BY (project, gate, cohort_id, trip_id, transition, run_id)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS notifications (
    project LowCardinality(String),
    trip_id String,
    transition LowCardinality(String),
    destination LowCardinality(String),
    idempotency_key String,
    body String CODEC(ZSTD(1)),
    due_at DateTime64(9, 'UTC'),
    confirmed_at Nullable(DateTime64(9, 'UTC')),
    attempts UInt32,
    last_error String,
    version UInt64
) ENGINE = ReplacingMergeTree(version)
ORDER BY (project, trip_id, transition, destination)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS golden_cases (
    project LowCardinality(String),
    case_id String,
    agent LowCardinality(String),
    state LowCardinality(String),
    split LowCardinality(String),
    representative String,
    runs UInt64,
    body String CODEC(ZSTD(1)),
    version UInt64
) ENGINE = ReplacingMergeTree(version)
ORDER BY (project, case_id)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS golden_members (
    project LowCardinality(String),
    case_id String,
    run_id String,
    failing Bool,
    version UInt64
) ENGINE = ReplacingMergeTree(version)
ORDER BY (project, case_id, run_id)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS calibrations (
    project LowCardinality(String),
    contract String,
    dimension LowCardinality(String),
    authority LowCardinality(String),
    source String,
    version UInt64
) ENGINE = ReplacingMergeTree(version)
ORDER BY (project, contract, dimension)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS contracts (
    contract String,
    dimension LowCardinality(String),
    kind LowCardinality(String),
    body String CODEC(ZSTD(1)),
    inserted_at DateTime64(9, 'UTC') DEFAULT now64(9, 'UTC')
) ENGINE = ReplacingMergeTree
ORDER BY (contract)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS evaluations (
    project LowCardinality(String),
    evaluation_id String,
    kind LowCardinality(String),
    body String CODEC(ZSTD(1)),
    version UInt64
) ENGINE = ReplacingMergeTree(version)
ORDER BY (project, evaluation_id)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS dead_letters (
    project LowCardinality(String),
    dead_letter_id String,
    origin LowCardinality(String),
    reason String,
    body String CODEC(ZSTD(1)),
    received_at DateTime64(9, 'UTC') DEFAULT now64(9, 'UTC')
) ENGINE = ReplacingMergeTree(received_at)
ORDER BY (project, dead_letter_id)
SETTINGS non_replicated_deduplication_window = 1000;
