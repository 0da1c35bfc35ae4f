-- Protocol logs of sessions, as their runners bring them: compressed chunks, and which one comes next.

CREATE TABLE session_logs (
  session_id TEXT NOT NULL REFERENCES sessions (id),
  number     INTEGER NOT NULL,                      -- from 0
  entries    BLOB NOT NULL,                         -- zstd of JSON of one SessionLog a line
  count      INTEGER NOT NULL,                      -- entries
  size       INTEGER NOT NULL,                      -- bytes before compression
  at         INTEGER NOT NULL,
  PRIMARY KEY (session_id, number)
) STRICT;
CREATE INDEX session_logs_by_age ON session_logs (at);

CREATE TABLE session_log_heads (
  session_id TEXT PRIMARY KEY REFERENCES sessions (id),
  next       INTEGER NOT NULL,                      -- number of the chunk awaited
  size       INTEGER NOT NULL,                      -- bytes before compression, so far
  full_at    INTEGER,                               -- when its limit was met: nothing more is kept
  at         INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX session_log_heads_by_age ON session_log_heads (at);
