-- Schedules start invocations at times of a cron text. Times are Unix milliseconds.

CREATE TABLE schedules (
  id            TEXT PRIMARY KEY,
  project_id    TEXT NOT NULL REFERENCES projects (id),
  function_id   TEXT NOT NULL REFERENCES functions (id),
  cron          TEXT NOT NULL,
  time_zone     TEXT NOT NULL,                      -- IANA name
  params        TEXT NOT NULL,                      -- JSON object
  overlap       TEXT NOT NULL CHECK (overlap IN ('skip', 'allow')),
  catch_up      TEXT NOT NULL CHECK (catch_up IN ('none', 'last')),
  enabled       INTEGER NOT NULL,
  version       INTEGER NOT NULL DEFAULT 1,         -- one more at each change by a user
  next_run_at   INTEGER,                            -- of the cron text; NULL: no run is due
  is_planned    INTEGER NOT NULL DEFAULT 1,         -- 0: the clock was set back, and next_run_at must be computed again
  last_run_at   INTEGER,                            -- when the last invocation was accepted
  last_invocation_id TEXT,                          -- retention may have removed it
  last_outcome  TEXT,                               -- JSON, of the newest time that was due
  created_at    INTEGER NOT NULL,
  updated_at    INTEGER NOT NULL
) STRICT;
CREATE INDEX schedules_due ON schedules (next_run_at, project_id, id) WHERE next_run_at IS NOT NULL;
CREATE INDEX schedules_by_project ON schedules (project_id);
CREATE INDEX schedules_by_function ON schedules (function_id, id);

ALTER TABLE invocations ADD COLUMN schedule_id TEXT;        -- that started it; NULL: a request
ALTER TABLE invocations ADD COLUMN scheduled_for INTEGER;   -- the time of the cron text
-- For lists: in the row both are behind the result.
CREATE INDEX invocations_scheduled ON invocations (id, schedule_id, scheduled_for)
  WHERE schedule_id IS NOT NULL;
