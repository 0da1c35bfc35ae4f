-- What a context holds: one blob, sealed for its key pair. A save replaces it and counts on.

ALTER TABLE contexts ADD COLUMN blob_id TEXT REFERENCES blobs (id);   -- null while nothing was saved
ALTER TABLE contexts ADD COLUMN saved_at INTEGER;
ALTER TABLE contexts ADD COLUMN save_seq INTEGER NOT NULL DEFAULT 0;  -- saves and uploads so far
CREATE UNIQUE INDEX contexts_by_blob ON contexts (blob_id) WHERE blob_id IS NOT NULL;

-- What a session starts from, since its work was offered to a runner: its blob stays until the
-- session has ended, whoever saves meanwhile.
ALTER TABLE sessions ADD COLUMN context_blob_id TEXT;
ALTER TABLE sessions ADD COLUMN context_seq INTEGER;                  -- save_seq at its lease
CREATE INDEX sessions_by_context_blob ON sessions (context_blob_id)
  WHERE context_blob_id IS NOT NULL AND status IN ('PENDING', 'RUNNING');
