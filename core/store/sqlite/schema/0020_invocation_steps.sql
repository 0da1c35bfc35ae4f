-- The steps of a run as its runner reports them with the outcome: written once, in the same statement.

ALTER TABLE invocations ADD COLUMN steps TEXT;              -- JSON of up to 32 [name, start ms, end ms, failed]
