-- Recordings of pages: a row per page, a blob per part. Offsets are milliseconds since the session's start.

CREATE TABLE recordings (
  session_id   TEXT NOT NULL REFERENCES sessions (id),
  page_id      INTEGER NOT NULL,                    -- from 0
  project_id   TEXT NOT NULL REFERENCES projects (id),
  lease_id     TEXT NOT NULL,                       -- whose holder brings it, also after the session's end
  url          TEXT NOT NULL,
  start_ms     INTEGER NOT NULL,
  end_ms       INTEGER NOT NULL,
  created_at   INTEGER NOT NULL,
  requested_at INTEGER,                             -- NULL: nobody asked for the download
  completed_at INTEGER,                             -- NULL: more may come
  PRIMARY KEY (session_id, page_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX recordings_by_lease ON recordings (lease_id);
CREATE INDEX recordings_by_age ON recordings (created_at);

CREATE TABLE recording_parts (
  session_id TEXT NOT NULL,
  page_id    INTEGER NOT NULL,
  number     INTEGER NOT NULL,                      -- 0: the video's start; its segments from 1
  blob_id    TEXT NOT NULL UNIQUE REFERENCES blobs (id),
  size       INTEGER NOT NULL,                      -- bytes, as the blob's
  start_ms   INTEGER NOT NULL,
  end_ms     INTEGER NOT NULL,
  PRIMARY KEY (session_id, page_id, number),
  FOREIGN KEY (session_id, page_id) REFERENCES recordings (session_id, page_id)
) STRICT, WITHOUT ROWID;
