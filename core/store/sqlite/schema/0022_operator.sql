-- Operator logins of the console, the audit of changes made with logins, and lists over all projects.

ALTER TABLE console_logins RENAME TO old_console_logins;
DROP INDEX console_logins_by_expiry;
DROP INDEX console_logins_by_project;
CREATE TABLE console_logins (
  hash          BLOB PRIMARY KEY,                   -- SHA-256 of the cookie's value
  project_id    TEXT REFERENCES projects (id),      -- NULL: an operator login
  operator_hash BLOB,                               -- of the operator token that made it; NULL: of a project
  key_id        TEXT,                               -- public part of the API key; NULL: by a one-time code
  created_at    INTEGER NOT NULL,
  expires_at    INTEGER NOT NULL,
  CHECK ((project_id IS NULL) <> (operator_hash IS NULL)),
  CHECK (operator_hash IS NULL OR key_id IS NULL)
) STRICT;
INSERT INTO console_logins (hash, project_id, key_id, created_at, expires_at)
  SELECT hash, project_id, key_id, created_at, expires_at FROM old_console_logins;
DROP TABLE old_console_logins;
CREATE INDEX console_logins_by_expiry ON console_logins (expires_at);
CREATE INDEX console_logins_by_project ON console_logins (project_id, created_at);

CREATE TABLE audit_events (
  id         TEXT PRIMARY KEY,
  created_at INTEGER NOT NULL,
  login      TEXT NOT NULL CHECK (login IN ('key', 'code', 'operator')),
  key_id     TEXT,                                  -- public part of the login's API key
  operation  TEXT NOT NULL,                         -- the RPC
  object_id  TEXT,
  project_id TEXT REFERENCES projects (id),         -- NULL: the whole installation
  address    TEXT NOT NULL,                         -- of the client
  outcome    TEXT                                   -- OK or a reason; NULL: not known
) STRICT;
CREATE INDEX audit_events_by_time ON audit_events (created_at, id);
CREATE INDEX audit_events_by_project ON audit_events (project_id, created_at, id);

CREATE INDEX sessions_by_age ON sessions (created_at, id);
CREATE INDEX sessions_open_by_age ON sessions (created_at, id) WHERE status IN ('PENDING', 'RUNNING');
