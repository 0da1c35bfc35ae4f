-- Handoffs: a session's user asks a person to do something in its browser.
CREATE TABLE handoffs (
  id           TEXT PRIMARY KEY,
  project_id   TEXT NOT NULL REFERENCES projects (id),
  session_id   TEXT NOT NULL REFERENCES sessions (id),
  status       TEXT NOT NULL,
  instructions TEXT NOT NULL,
  -- of the API key in its link; empty without one
  key_id       TEXT NOT NULL,
  created_at   INTEGER NOT NULL,
  expires_at   INTEGER NOT NULL,
  ended_at     INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX handoffs_by_session ON handoffs (session_id, id);
CREATE INDEX handoffs_pending ON handoffs (expires_at) WHERE status = 'PENDING';
