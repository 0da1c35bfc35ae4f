-- Logins of the console: the cookies of browsers.

CREATE TABLE console_logins (
  hash       BLOB PRIMARY KEY,                      -- SHA-256 of the cookie's value
  project_id TEXT NOT NULL REFERENCES projects (id),
  key_id     TEXT,                                  -- public part of the API key; NULL: by a one-time code
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX console_logins_by_expiry ON console_logins (expires_at);
CREATE INDEX console_logins_by_project ON console_logins (project_id, created_at);
