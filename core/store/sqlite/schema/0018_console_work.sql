-- Lists of invocations, builds and events of a whole project by time, for the console.

-- With the times: they are behind the result in a row, and reading them would read a result of 6 MiB.
CREATE INDEX invocations_by_time ON invocations (project_id, created_at, id, status, function_id,
  started_at, ended_at, expires_at);
CREATE INDEX invocations_failed ON invocations (project_id, created_at, id, status, function_id)
  WHERE status = 'FAILED';
CREATE INDEX invocations_by_function ON invocations (function_id, created_at, id, status);
CREATE INDEX builds_by_time ON builds (project_id, created_at, id, status);
-- Unique, so that a list needs no other order within one moment.
CREATE UNIQUE INDEX events_by_time ON events (project_id, created_at, id);
