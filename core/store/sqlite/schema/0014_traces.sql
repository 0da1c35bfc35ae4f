-- The trace that a piece of work belongs to: its runner goes on with it.

ALTER TABLE jobs ADD COLUMN traceparent TEXT;               -- W3C Trace Context; NULL: its request had none
