-- Sessions that users start themselves.

ALTER TABLE sessions ADD COLUMN ended_lease_id TEXT;   -- the lease whose end was taken
CREATE UNIQUE INDEX sessions_by_ended_lease ON sessions (ended_lease_id)
  WHERE ended_lease_id IS NOT NULL;

CREATE INDEX sessions_by_status ON sessions (project_id, status, id);

-- Those that count against the project's limit: a released one does not.
CREATE INDEX jobs_in_limit ON jobs (project_id) WHERE kind = 'session' AND released_at IS NULL;
CREATE INDEX jobs_released ON jobs (runner_id) WHERE released_at IS NOT NULL;

-- Every text in a session's metadata, for queries by key and value.
CREATE TABLE session_metadata (
  project_id TEXT NOT NULL,
  path       TEXT NOT NULL,                            -- JSON array of the keys that lead there
  value      TEXT NOT NULL,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  PRIMARY KEY (project_id, path, value, session_id)
) STRICT, WITHOUT ROWID;
