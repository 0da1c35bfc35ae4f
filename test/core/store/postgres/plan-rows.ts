/** Rows of all tables, for plans of statements: enough that a plan without an index is slow. */

export const ROWS = 20_000;
const PROJECTS = 40;

/** All rows are of forty projects; most are of the first. */
export const FILL = `
  SET session_replication_role = replica;
  INSERT INTO projects SELECT 'project-' || n, 'name ' || n, 900, 25, n, n, 0, 0
  FROM generate_series(0, ${PROJECTS}) AS n;
  INSERT INTO queues (kind, project_id, cap, ready, vtime)
  SELECT kind, id, 25, 0, 1 FROM projects, unnest(ARRAY['invocation', 'build', 'session']) AS kind;
  CREATE TEMP TABLE n AS SELECT n,
    'project-' || CASE WHEN n % 4 = 0 THEN n / 4 % ${PROJECTS} + 1 ELSE 1 END
    AS project, lpad(n::text, 8, '0') AS id FROM generate_series(1, ${ROWS}) AS n;
  INSERT INTO sessions (id, project_id, status, region, context_id, user_metadata, params,
    created_at,
    updated_at, started_at, ended_at, expires_at)
  SELECT 's' || id, project, CASE WHEN n % 100 = 7 THEN 'ERROR' WHEN n % 500 = 3 THEN 'RUNNING'
    ELSE 'COMPLETED' END, 'us', CASE WHEN n % 1000 = 3 THEN 'c' || id END, '{"a":"b"}', '{}', n,
      n, n,
    CASE WHEN n % 500 = 3 THEN NULL ELSE n END, n FROM n;
  INSERT INTO jobs (id, kind, project_id, state, runner_id, expires_at, created_at)
  SELECT id, 'session', project_id, 'running', 'runner', 1,
    1 FROM sessions WHERE status = 'RUNNING';
  INSERT INTO blobs (id, project_id, kind, size, sha256, created_at)
  SELECT 'b' || id, project, 'BUILD_ARCHIVE', 1, 'aa', n FROM n;
  INSERT INTO builds (id, project_id, entrypoint, archive_blob_id, status, created_at, updated_at,
    expires_at, ended_at)
  SELECT 'u' || id, project, 'a.ts', 'b' || id, 'COMPLETED', n, n, n, n FROM n;
  INSERT INTO functions (id, project_id, name, created_at, updated_at, deleted_at)
  SELECT 'f' || id, project, 'name ' || id, n, n, CASE WHEN n % 1000 = 0 THEN n END FROM n;
  INSERT INTO versions (id, project_id, function_id, build_id, created_at)
  SELECT 'v' || id, project, 'f' || id, 'u' || id, n FROM n;
  INSERT INTO invocations (id, project_id, function_id, version_id, session_id, region, status,
    params,
    timeout_ms, created_at, updated_at, expires_at, ended_at)
  SELECT 'i' || id, project, 'f' || lpad((n % 2000 + 1)::text, 8, '0'), 'v' || id, 's' || id, 'us',
    CASE WHEN n % 50 = 7 THEN 'FAILED' ELSE 'COMPLETED' END, '{}', 1, n, n, n, n FROM n;
  INSERT INTO log_lines SELECT 'i' || id, 0, 'log', 'a', 1 FROM n;
  INSERT INTO log_heads SELECT 'i' || id, 1, 1, 0 FROM n;
  INSERT INTO session_metadata SELECT project, '["a"]', 'b', 's' || id FROM n;
  INSERT INTO labels SELECT 'l' || id, project, id, id, n, n FROM n WHERE n <= 2000;
  INSERT INTO session_labels SELECT 'l' || lpad((n % 2000 + 1)::text, 8, '0'), 's' || id,
    project FROM n;
  INSERT INTO recordings SELECT 's' || id, 0, project, id, 'url', 0, 1, n FROM n;
  INSERT INTO downloads SELECT 'd' || id, 's' || id, project, 'b' || id, 'file', 'text', 1, 'aa',
    n FROM n;
  INSERT INTO extensions SELECT 'e' || id, project, 'b' || id, 'file', n, n,
    CASE WHEN n % 2000 = 0 THEN n END FROM n;
  INSERT INTO certificates SELECT 'k' || id, project, 'pem', n, n,
    CASE WHEN n % 2000 = 0 THEN n END FROM n;
  INSERT INTO contexts (id, project_id, name, name_key, status, key_pair_id, public_key, created_at,
    updated_at) SELECT 'c' || id, project, id, id, 'active', 'p', 'pem', n, n FROM n;
  INSERT INTO secrets SELECT 'x' || id, project, id, 'p', '\\x00', n, n FROM n;
  INSERT INTO function_secrets SELECT 'f' || id, 'x' || id FROM n;
  INSERT INTO api_keys (hash, project_id, public_id, created_at)
  SELECT sha256(id::bytea), project, id, n FROM n;
  INSERT INTO audit_events (id, created_at, login, operation, project_id, address)
  SELECT 'a' || id, n, 'key', 'Do', project, 'here' FROM n;
  INSERT INTO usage_days SELECT 'project-' || n % ${PROJECTS} + 1, n, 1, 1, 1, 1, 1 FROM n;
  INSERT INTO usage_function_days SELECT project, n, 'f' || id, 1, 1, 1, 1, 1 FROM n;
  INSERT INTO webhooks (id, project_id, endpoint, endpoint_key, event_types, status, created_at,
    updated_at, next_due)
  SELECT 'w' || id, project, id, id, '[]', 'enabled', n, n, n FROM n WHERE n <= 400;
  INSERT INTO webhook_secrets SELECT 'w' || id, 1, '\\x00', n FROM n WHERE n <= 400;
  INSERT INTO webhook_days SELECT 'w' || lpad((n % 400 + 1)::text, 8, '0'), n, 1, 1, 1, '[]' FROM n;
  INSERT INTO events SELECT n, 'o' || id, project, 'type', 'i' || id, '\\x00', n FROM n;
  INSERT INTO deliveries (event_id, webhook_id, state, due, created_at)
  SELECT 'o' || id, 'w' || lpad((n % 400 + 1)::text, 8, '0'),
    CASE WHEN n % 10 = 0 THEN 'pending' ELSE 'delivered' END, n, n FROM n;
  INSERT INTO attempts (delivery_id, n, trigger, endpoint, started_at, ended_at)
  SELECT n, 1, 'event', 'here', n, n FROM n;
  INSERT INTO secret_key_pairs SELECT 'p' || n, 'project-' || n, '\\x00', '\\x00', n
  FROM generate_series(0, ${PROJECTS}) AS n;
  INSERT INTO session_logs SELECT 's' || id, 0, '\\x00', 1, 1, n FROM n;
  INSERT INTO session_log_heads SELECT 's' || id, 1, 1, NULL, n FROM n;
  INSERT INTO handoffs (id, project_id, session_id, status, instructions, key_id, created_at,
    expires_at)
  SELECT 'h' || id, project, 's' || id, 'EXPIRED', '', '', n, n FROM n;
  INSERT INTO idempotency_keys SELECT project, id, '\\x00', 'i' || id, n FROM n;
  UPDATE sessions SET params =
    '{"extensionId":"e00000001","proxySettings":{"caCertificates":["k00000001"]}}'
  WHERE id = 's00000002';
  ANALYZE;`;
