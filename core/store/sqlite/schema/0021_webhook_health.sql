-- What the console shows of a webhook: what signed each attempt, and how each of its days went.

ALTER TABLE attempts ADD COLUMN signed_at INTEGER;          -- webhook-timestamp, in Unix seconds; null before this migration
ALTER TABLE attempts ADD COLUMN signed_by TEXT;             -- seq of each secret that signed, newest first, with spaces between

-- When counting began; null: when the webhook was created.
ALTER TABLE webhooks ADD COLUMN counted_from INTEGER;
UPDATE webhooks SET counted_from = unixepoch() * 1000;

-- Counts of each day without tests: reading the deliveries of 14 days would take as long as they are many.
CREATE TABLE webhook_days (
  webhook_id TEXT NOT NULL,
  day INTEGER NOT NULL,                                     -- days since 1970, UTC
  delivered INTEGER NOT NULL,                               -- attempts with a 2xx answer
  failed INTEGER NOT NULL,                                  -- attempts that failed
  lost INTEGER NOT NULL,                                    -- deliveries that were given up or skipped
  answers TEXT NOT NULL,                                    -- JSON: answers by their time, in the ranges of core/delivery/answer-times.ts
  PRIMARY KEY (webhook_id, day)
) STRICT, WITHOUT ROWID;
