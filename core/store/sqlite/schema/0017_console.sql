-- Lists of a whole project by time, for the console. The columns behind the key answer its filters without the row.

CREATE INDEX sessions_by_time ON sessions (project_id, created_at, id, status, context_id);
-- Few sessions end so, and they are asked for most.
CREATE INDEX sessions_failed ON sessions (project_id, created_at, id, status, context_id)
  WHERE status IN ('ERROR', 'TIMED_OUT');
