-- What a gate knows at its next window besides: the evidence of a drift gate.

ALTER TABLE gate_states ADD COLUMN IF NOT EXISTS memory Array(Float64);
