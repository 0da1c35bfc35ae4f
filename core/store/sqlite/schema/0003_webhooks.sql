-- Webhooks, their secrets, events, deliveries and attempts. Times are Unix milliseconds.

-- A deleted webhook stays as a tombstone, so that the deliveries it had can still be explained.
CREATE TABLE webhooks (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES projects (id),
  endpoint TEXT NOT NULL,
  endpoint_key TEXT NOT NULL,                      -- the endpoint as new URL() writes it: what makes two of them the same
  event_types TEXT NOT NULL,                       -- sorted JSON array
  status TEXT NOT NULL CHECK (status IN ('enabled', 'disabled', 'deleted')),
  disabled_at INTEGER,
  disabled_reason TEXT,
  first_failure_at INTEGER,                        -- failing since; null after a success
  last_attempt_at INTEGER,
  consecutive_failures INTEGER NOT NULL DEFAULT 0,
  next_due INTEGER,                                -- MIN(due) of the pending deliveries; keeps the claim off a global sort
  cap INTEGER NOT NULL DEFAULT 8,                  -- deliveries in flight at once; delivery/pace.ts moves it
  breaker_ms INTEGER NOT NULL DEFAULT 0,           -- the wait between probes; 0: the breaker is closed
  not_before INTEGER NOT NULL DEFAULT 0,           -- breaker: no probe before
  paced_until INTEGER NOT NULL DEFAULT 0,          -- rate: when the last delivery taken would go out, one every so often
  last_served INTEGER NOT NULL DEFAULT 0,          -- fairness counter: the least recently served goes first
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  version INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE UNIQUE INDEX webhooks_by_endpoint ON webhooks (project_id, endpoint_key) WHERE status <> 'deleted';
CREATE INDEX webhooks_by_project ON webhooks (project_id, id) WHERE status <> 'deleted';
-- One that is disabled is due too: what was replayed or is a test goes out all the same.
CREATE INDEX webhooks_due ON webhooks (next_due) WHERE next_due IS NOT NULL AND status <> 'deleted';
CREATE INDEX webhooks_served ON webhooks (last_served);
CREATE INDEX webhooks_deleted ON webhooks (updated_at) WHERE status = 'deleted';

CREATE TABLE webhook_secrets (
  webhook_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  sealed BLOB NOT NULL,                            -- AES-256-GCM under keys/master.key, aad = webhook id and seq
  created_at INTEGER NOT NULL,
  expires_at INTEGER,                              -- null for the newest
  PRIMARY KEY (webhook_id, seq)
) STRICT, WITHOUT ROWID;

-- The body is serialised once; every attempt to every endpoint sends these bytes.
CREATE TABLE events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,           -- the order of commit, never used twice: cursors of listeners
  id TEXT NOT NULL UNIQUE,
  project_id TEXT NOT NULL,
  type TEXT NOT NULL,
  resource_id TEXT NOT NULL,                       -- of a test: the webhook
  body BLOB NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
-- A repeated terminal report cannot make a second event; of tests a webhook has many.
CREATE UNIQUE INDEX events_once ON events (resource_id, type) WHERE type <> 'webhooks.test';
CREATE INDEX events_by_resource ON events (resource_id);
CREATE INDEX events_by_project ON events (project_id, seq);
CREATE INDEX events_by_age ON events (created_at);

-- Who reads the events of a project as they happen: until then each is kept, also when no webhook subscribes.
CREATE TABLE listeners (
  project_id TEXT PRIMARY KEY REFERENCES projects (id),
  until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE deliveries (
  id INTEGER PRIMARY KEY,
  event_id TEXT NOT NULL,
  webhook_id TEXT NOT NULL,
  is_test INTEGER NOT NULL DEFAULT 0,              -- its event is a test: what a report has to know without the event
  generation INTEGER NOT NULL DEFAULT 0,           -- one more at each replay
  state TEXT NOT NULL CHECK (state IN
    ('pending', 'in_flight', 'delivered', 'exhausted', 'skipped', 'cancelled')),
  reason TEXT,                                     -- why it was skipped, cancelled or given up
  due INTEGER,
  tries INTEGER NOT NULL DEFAULT 0,
  interrupted INTEGER NOT NULL DEFAULT 0,
  sender_id TEXT,                                  -- who holds it, while it is in flight
  instance_id TEXT,
  lease_until INTEGER,
  claim_seq INTEGER NOT NULL DEFAULT 0,            -- fences late reports
  created_at INTEGER NOT NULL,
  done_at INTEGER,
  UNIQUE (event_id, webhook_id)
) STRICT;
CREATE INDEX deliveries_due ON deliveries (webhook_id, due) WHERE state = 'pending';
CREATE INDEX deliveries_leased ON deliveries (lease_until) WHERE state = 'in_flight';
CREATE INDEX deliveries_by_webhook ON deliveries (webhook_id, id);
-- Without what is in flight: a delivery comes and goes there at each attempt, and deliveries_leased has it.
CREATE INDEX deliveries_by_state ON deliveries (webhook_id, state, id) WHERE state <> 'in_flight';
-- In flight when their webhook was deleted, and their sender not yet told.
CREATE INDEX deliveries_gone ON deliveries (sender_id) WHERE state = 'cancelled' AND lease_until IS NOT NULL;

CREATE TABLE attempts (
  id INTEGER PRIMARY KEY,
  delivery_id INTEGER NOT NULL,
  n INTEGER NOT NULL,                              -- counts the attempts of a delivery from 1, over all its generations
  trigger TEXT NOT NULL CHECK (trigger IN ('event', 'retry', 'manual')),
  endpoint TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  ended_at INTEGER,
  outcome TEXT CHECK (outcome IN ('ok', 'http', 'timeout', 'dns', 'connect', 'tls', 'blocked', 'reset',
    'protocol', 'interrupted')),
  status INTEGER,
  latency_ms INTEGER,
  error TEXT,
  response BLOB,
  remote_ip TEXT
) STRICT;
CREATE INDEX attempts_by_delivery ON attempts (delivery_id, n);

-- One row. Core writes it while it runs, so that its own downtime is not held against an endpoint.
CREATE TABLE heartbeat (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  at INTEGER NOT NULL
) STRICT;
