/** The console's lists in REST, over gRPC to core: fields, filters in the query, refusals. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openUploads } from '../../gateway/routes/files/contexts.ts';

const test = suite('core/console/rest');

type Page = { invocations: Record<string, unknown>[]; nextCursor?: string };

test('lists are served as JSON, page by page', async () => {
  await using app = await openUploads({}, true);
  const { call } = app;
  const functionId = await app.publish({ name: 'title' });
  const made = [await app.invoke(functionId), await app.invoke(functionId)];
  const list = async (query: string) =>
    (await call<Page>('GET', `/console/api/v1/invocations?${query}`)).json;
  const first = await list('limit=1&status=PENDING');
  const [row] = first.invocations;
  assert.equal(
    [row?.['id'], row?.['functionName'], row?.['status'], row?.['startedAt']],
    [made[1]?.id, 'title', 'PENDING', undefined],
  );
  assert.match(String(row?.['createdAt']), /^\d{4}-.*Z$/);
  const second = await list(`limit=1&status=PENDING&cursor=${first.nextCursor}`);
  assert.equal([second.invocations[0]?.['id'], second.nextCursor], [made[0]?.id, undefined]);
  assert.equal((await list('from=2100-01-01T00:00:00Z')).invocations, []);
  const counts = 'kind=INVOCATIONS&bucket=3600&group=status&from=2026-01-02T00:00:00Z';
  const counted = await call<{ buckets: object[] }>('GET', `/console/api/v1/counts?${counts}`);
  assert.equal(counted.json.buckets, [{ at: '2026-01-02T03:00:00Z', key: 'PENDING', count: 2 }]);
});

test('a wrong filter is a 400 that names it, a wrong key a 401', async () => {
  await using app = await openUploads({}, true);
  const { call } = app;
  type Refused = { message: string };
  for (const [query, field] of [
    ['limit=x', 'limit'],
    ['limit=500', 'limit'],
    ['status=GONE', 'status'],
    ['from=yesterday', 'from'],
    ['cursor=x', 'cursor'],
    ['other=1', 'other'],
  ] as const) {
    const { status, json } = await call<Refused>('GET', `/console/api/v1/sessions?${query}`);
    assert.is(status, 400, query);
    assert.match(json.message, `\`${field}\``);
  }
  const { key, revoke } = await app.otherKey();
  assert.is((await call('GET', '/console/api/v1/overview', key)).status, 200);
  await revoke();
  assert.is((await call('GET', '/console/api/v1/overview', key)).status, 401);
});

test.run();
