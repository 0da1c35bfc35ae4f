/** One-shots in core: what is kept of them when their caller leaves. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { ReadLinksRequest } from '../../../proto/gen/tabern/v1/one_shots.pb.ts';
import { rowsOf } from '../../support/core/database.ts';
import { until } from '../../support/poll.ts';
import { type Booted, boot, HOLDER } from '../boot.ts';

const test = suite('core/functions/one-shots');
const TEXT = { $case: 'resultsJson', value: JSON.stringify('{"page":{}}\na secret page') } as const;

function complete(app: Booted, leaseId: string): Promise<unknown> {
  const end = { leaseId, outcome: TEXT, sessionStartMs: 0, steps: [] };
  return app.clients.runners.completeInvocation(end, app.asRunner);
}

/** Status, params and result of the only invocation, as they are stored. */
async function stored({ dir }: Booted) {
  type Row = { status: string; params: string; results: string | null };
  const rows = await rowsOf<Row>(dir, 'SELECT status, params, results FROM invocations');
  assert.is(rows.length, 1);
  return must(rows[0], 'a row');
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
  assert.equal(await stored(app), { status: 'COMPLETED', params: '{}', results: null });
});

test('nor is that of one that returns as its caller leaves', async () => {
  await using app = await boot();
  const { asking, leave } = ask(app);
  const { leaseId } = must((await app.lease('INVOCATION', 5_000))[0], 'work');
  const ending = complete(app, leaseId);
  leave.abort();
  await Promise.all([ending, asking]);
  await until(async () => (await stored(app)).results === null);
});

test('a result is removed when its caller has read it', async () => {
  await using app = await boot();
  const { asking } = ask(app);
  const { leaseId } = must((await app.lease('INVOCATION', 5_000))[0], 'work');
  await complete(app, leaseId);
  await asking;
  assert.equal(await stored(app), { status: 'COMPLETED', params: '{}', results: null });
});

test.run();
