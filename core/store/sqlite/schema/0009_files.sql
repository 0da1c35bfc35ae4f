-- What pages download and what sessions load: a blob each. Times are Unix milliseconds.

CREATE TABLE downloads (
  id         TEXT PRIMARY KEY,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  project_id TEXT NOT NULL REFERENCES projects (id),
  blob_id    TEXT NOT NULL UNIQUE REFERENCES blobs (id),
  filename   TEXT NOT NULL,
  mime_type  TEXT NOT NULL,
  size       INTEGER NOT NULL,                      -- bytes, as the blob's
  sha256     TEXT NOT NULL,                         -- lower-case hex, as the blob's
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX downloads_by_session ON downloads (session_id, id);
CREATE INDEX downloads_by_age ON downloads (created_at);

-- A deleted extension stays as a tombstone while an open session is to load it.
CREATE TABLE extensions (
  id         TEXT PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES projects (id),
  blob_id    TEXT NOT NULL UNIQUE REFERENCES blobs (id),
  file_name  TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  deleted_at INTEGER
) STRICT;
CREATE INDEX extensions_by_project ON extensions (project_id, id);
CREATE INDEX extensions_deleted ON extensions (deleted_at) WHERE deleted_at IS NOT NULL;

-- Which open sessions are to load an extension.
CREATE INDEX sessions_open_by_project ON sessions (project_id)
  WHERE status IN ('PENDING', 'RUNNING');
