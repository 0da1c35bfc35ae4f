-- Draining runners: when the live instance reported that it leases no more work; NULL before.

ALTER TABLE runners ADD COLUMN drained_at INTEGER;
