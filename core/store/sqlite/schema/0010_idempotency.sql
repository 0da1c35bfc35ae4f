-- Which invocation a client's idempotency key has made. Times are Unix milliseconds.

CREATE TABLE idempotency_keys (
  project_id    TEXT NOT NULL REFERENCES projects (id),
  key           TEXT NOT NULL,
  request_hash  BLOB NOT NULL,                      -- SHA-256 of what was asked for
  invocation_id TEXT NOT NULL REFERENCES invocations (id),
  expires_at    INTEGER NOT NULL,
  PRIMARY KEY (project_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at);
