-- Labels by which sessions are found, and certificates that their browsers trust. Times are Unix milliseconds.

-- A deleted label has no key, is shown nowhere, and stays until its sessions' rows are removed.
CREATE TABLE labels (
  id         TEXT PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES projects (id),
  name       TEXT NOT NULL,
  name_key   TEXT,                                  -- names with one key are the same name; NULL: deleted
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX labels_by_name ON labels (project_id, name_key) WHERE name_key IS NOT NULL;
CREATE INDEX labels_by_project ON labels (project_id, id) WHERE name_key IS NOT NULL;
CREATE INDEX labels_deleted ON labels (id) WHERE name_key IS NULL;

CREATE TABLE session_labels (
  label_id   TEXT NOT NULL REFERENCES labels (id),
  session_id TEXT NOT NULL REFERENCES sessions (id),
  project_id TEXT NOT NULL,
  PRIMARY KEY (label_id, session_id DESC)
) STRICT, WITHOUT ROWID;
CREATE INDEX session_labels_by_session ON session_labels (session_id);

-- A deleted certificate stays as a tombstone while an open session is to trust it.
CREATE TABLE certificates (
  id         TEXT PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES projects (id),
  pem        TEXT NOT NULL,                         -- one or several, as they are written for a browser
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  deleted_at INTEGER
) STRICT;
CREATE INDEX certificates_by_project ON certificates (project_id, id) WHERE deleted_at IS NULL;
CREATE INDEX certificates_deleted ON certificates (project_id) WHERE deleted_at IS NOT NULL;
