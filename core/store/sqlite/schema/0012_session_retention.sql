-- Sessions leave with time; what they used stays counted.

CREATE INDEX session_metadata_by_session ON session_metadata (session_id);
ALTER TABLE projects ADD COLUMN past_minutes INTEGER NOT NULL DEFAULT 0;       -- of sessions that are gone
ALTER TABLE projects ADD COLUMN past_proxy_bytes INTEGER NOT NULL DEFAULT 0;
