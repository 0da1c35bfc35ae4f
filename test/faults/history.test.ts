/** The checks of the fault tests: a correct history passes, and each planted fault is reported. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { tempDirectory } from '../support/temp.ts';
import { brokenPromises } from './history.ts';

const SCHEMA = fileURLToPath(new URL('../../core/store/sqlite/schema', import.meta.url));

/** One project and webhook; a completed and a failed invocation, both delivered. */
const GOOD = `
  INSERT INTO projects (id, name, default_timeout, concurrency, created_at, updated_at)
    VALUES ('p', 'default', 900, 25, 1, 1);
  INSERT INTO blobs VALUES ('a', 'p', 'BUILD_ARCHIVE', 1, 'x', 1);
  INSERT INTO builds (id, project_id, entrypoint, archive_blob_id, status, created_at, updated_at,
    expires_at) VALUES ('b', 'p', 'index.ts', 'a', 'COMPLETED', 1, 1, 9);
  INSERT INTO functions (id, project_id, name, created_at, updated_at)
    VALUES ('f', 'p', 'trivial', 1, 1);
  INSERT INTO versions VALUES ('v', 'p', 'f', 'b', NULL, NULL, 1);
  INSERT INTO queues (kind, project_id, cap, vtime) VALUES ('invocation', 'p', 25, 3);
  INSERT INTO webhooks (id, project_id, endpoint, endpoint_key, event_types, status, created_at,
    updated_at) VALUES ('w', 'p', 'https://e', 'https://e', '["functions.invocations.completed",
    "functions.invocations.failed"]', 'enabled', 1, 1);
  ${invocation('one', 'COMPLETED', 'NULL')}
  ${invocation('two', 'FAILED', `'{"code":"WORKLOAD_ERROR"}'`)}`;

const FAULTS: Record<string, { sql: string; says: RegExp }> = {
  'a lost acknowledged invocation': {
    sql: `DELETE FROM deliveries WHERE event_id = 'e-one'; DELETE FROM events WHERE id = 'e-one';
      DELETE FROM invocations WHERE id = 'one'`,
    says: /^one was acknowledged, and lost$/,
  },
  'an invocation that never ended': {
    sql: `UPDATE invocations SET status = 'RUNNING' WHERE id = 'one';
      DELETE FROM deliveries WHERE event_id = 'e-one'; DELETE FROM events WHERE id = 'e-one'`,
    says: /^one never ended: RUNNING/,
  },
  'a swapped status': {
    sql: `UPDATE invocations SET status = 'FAILED', cause = '{}' WHERE id = 'one'`,
    says: /^one is FAILED, its end events: \[functions\.invocations\.completed\]$/,
  },
  'an end without a time': {
    sql: `UPDATE invocations SET ended_at = NULL WHERE id = 'one'`,
    says: /^one is COMPLETED without a time/,
  },
  'a failure without a cause': {
    sql: `UPDATE invocations SET cause = NULL WHERE id = 'two'`,
    says: /^two is FAILED, cause null/,
  },
  'a session that still runs': {
    sql: `UPDATE sessions SET status = 'RUNNING' WHERE id = 's-one'`,
    says: /^one is COMPLETED, its session RUNNING/,
  },
  'a dropped event': {
    sql: `DELETE FROM deliveries WHERE event_id = 'e-one'; DELETE FROM events WHERE id = 'e-one'`,
    says: /^one is COMPLETED, its end events: \[\]/,
  },
  'a second, different end': {
    sql: `INSERT INTO events (id, project_id, type, resource_id, body, created_at)
      VALUES ('e3', 'p', 'functions.invocations.failed', 'one', x'00', 2);
      INSERT INTO deliveries (event_id, webhook_id, state, created_at)
      VALUES ('e3', 'w', 'delivered', 2)`,
    says: /^one is COMPLETED, its end events: \[.*,.*\]/,
  },
  'a dropped delivery': {
    sql: `DELETE FROM deliveries WHERE event_id = 'e-two'`,
    says: /failed of two: its delivery is missing/,
  },
  'a delivery that stays in flight': {
    sql: `UPDATE deliveries SET state = 'in_flight' WHERE event_id = 'e-two'`,
    says: /failed of two: its delivery is in_flight/,
  },
  'a waiting delivery without mayWait': {
    sql: `UPDATE deliveries SET state = 'pending', due = 5002, tries = 1 WHERE event_id = 'e-two'`,
    says: /failed of two: its delivery is pending/,
  },
  'a leftover job': {
    sql: `INSERT INTO jobs (id, kind, project_id, state, expires_at, created_at)
      VALUES ('one', 'invocation', 'p', 'running', 9, 1)`,
    says: /^job one is left: running/,
  },
  'a wrong counter': {
    sql: `UPDATE queues SET running = 1`,
    says: /^invocation queue counts 0 ready, 1 running/,
  },
};

const history = suite('history');

history('a correct history has no errors', async () => {
  assert.equal(await judged(''), []);
});

for (const [name, { sql, says }] of Object.entries(FAULTS)) {
  history(`${name} is reported`, async () => {
    const broken = await judged(sql);
    assert.is(broken.length, 1, broken.join('\n'));
    assert.match(broken[0] ?? '', says);
  });
}

const WAITING = `
  UPDATE deliveries SET state = 'pending', tries = 1, due = 5002 WHERE event_id = 'e-two';
  INSERT INTO attempts (delivery_id, n, trigger, endpoint, started_at, ended_at, outcome)
  SELECT id, 1, 'event', 'https://e', 1, 2, 'http' FROM deliveries WHERE event_id = 'e-two';`;

history('a delivery that waits for its scheduled retry is accepted with mayWait', async () => {
  assert.equal(await judged(WAITING, { mayWait: true }), []);
  for (const due of [3_000, 6_003]) {
    const sql = `${WAITING} UPDATE deliveries SET due = ${due} WHERE event_id = 'e-two'`;
    const broken = await judged(sql, { mayWait: true });
    assert.is(broken.length, 1, `due at ${due}`);
    assert.match(broken[0] ?? '', /failed of two: its delivery is pending/);
  }
});

history.run();

async function judged(fault: string, options = {}): Promise<string[]> {
  await using dir = tempDirectory();
  const db = new Database(join(dir.path, 'tabern.db'));
  const files = readdirSync(SCHEMA).sort();
  for (const name of files) db.exec(readFileSync(join(SCHEMA, name), 'utf8'));
  db.exec(GOOD);
  db.exec(fault);
  db.close();
  return brokenPromises(dir.path, ['one', 'two'], options);
}

function invocation(id: string, status: string, cause: string): string {
  return `
    INSERT INTO sessions (id, project_id, status, region, params, created_at, updated_at,
      expires_at) VALUES ('s-${id}', 'p', 'COMPLETED', 'us-west-2', '{}', 1, 1, 9);
    INSERT INTO invocations (id, project_id, function_id, version_id, session_id, region, status,
      params, cause, timeout_ms, created_at, updated_at, ended_at, expires_at) VALUES ('${id}',
      'p', 'f', 'v', 's-${id}', 'us-west-2', '${status}', '{}', ${cause}, 1, 1, 2, 2, 9);
    INSERT INTO events (id, project_id, type, resource_id, body, created_at)
      VALUES ('e-${id}', 'p', 'functions.invocations.${status.toLowerCase()}',
      '${id}', x'00', 2);
    INSERT INTO deliveries (event_id, webhook_id, state, created_at)
      VALUES ('e-${id}', 'w', 'delivered', 2);`;
}
