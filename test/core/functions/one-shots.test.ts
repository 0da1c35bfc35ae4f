/** One-shots in core: what is kept of them when their caller leaves. */
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { ReadLinksRequest } from '../../../proto/gen/tabern/v1/one_shots.pb.ts';
import { until } from '../../support/poll.ts';
import { type Booted, boot, HOLDER } from '../boot.ts';

const test = suite('core/functions/one-shots');
const TEXT = { $case: 'resultsJson', value: JSON.stringify('{"page":{}}\na secret page') } as const;

function complete(app: Booted, leaseId: string): Promise<unknown> {
  const end = { leaseId, outcome: TEXT, sessionStartMs: 0, steps: [] };
  return app.clients.runners.completeInvocation(end, app.asRunner);
}

/** Status, params and result of the only invocation, as they are stored. */
function stored({ dir }: Booted) {
  const db = new Sqlite(join(dir, 'tabern.db'), { readonly: true });
  try {
    const [row, ...more] = db.prepare('SELECT status, params, results FROM invocations').all();
    assert.is(more.length, 0);
    return row as { status: string; params: string; results: string | null };
  } finally {
    db.close();
  }
}

function ask(app: Booted) {
  const leave = new AbortController();
  const page = ReadLinksRequest.fromPartial({ url: 'https://example.com/' });
  const asking = app.clients.oneShots
    .readLinks(page, { ...app.asProject, signal: leave.signal })
    .then(String, ({ message }: Error) => message);
  return { asking, leave };
}

test('the result of a handler that returns after its caller left is not kept', async () => {
  await using app = await boot();
  const { asking, leave } = ask(app);
  const { leaseId } = must((await app.lease('INVOCATION', 5_000))[0], 'work');
  leave.abort();
  await asking;
  const released = { ...HOLDER, knownLeaseIds: [], waitMs: 25_000 };
  const { leaseIds } = await app.clients.runners.awaitReleases(released, app.asRunner);
  assert.equal(leaseIds, [leaseId]);
  await complete(app, leaseId);
  assert.equal(stored(app), { status: 'COMPLETED', params: '{}', results: null });
});

test('nor is that of one that returns as its caller leaves', async () => {
  await using app = await boot();
  const { asking, leave } = ask(app);
  const { leaseId } = must((await app.lease('INVOCATION', 5_000))[0], 'work');
  const ending = complete(app, leaseId);
  leave.abort();
  await Promise.all([ending, asking]);
  await until(() => stored(app).results === null);
});

test('a result is removed when its caller has read it', async () => {
  await using app = await boot();
  const { asking } = ask(app);
  const { leaseId } = must((await app.lease('INVOCATION', 5_000))[0], 'work');
  await complete(app, leaseId);
  await asking;
  assert.equal(stored(app), { status: 'COMPLETED', params: '{}', results: null });
});

test.run();
