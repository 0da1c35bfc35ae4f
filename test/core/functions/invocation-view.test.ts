/** Pages of invocations: omitted values, and that the largest page fits a message. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { fitting, PAGE_MAX_BYTES, WIRE_PER_JSON } from '../../../core/functions/invocation-view.ts';
import type { InvocationRow } from '../../../core/store/types/invocations.ts';
import { Invocation } from '../../../proto/gen/tabern/v1/invocations.pb.ts';
import { MESSAGE_MAX_BYTES } from '../../../proto/rpc/remote.ts';
import { boot } from '../boot.ts';

const test = suite('core/functions/invocation-view');
const KIB = 1024;

function row(id: string, params: string, results: string | null): InvocationRow {
  return { id, params, results } as InvocationRow; // no other member is read
}

test('a page of usual size is complete, in order', () => {
  const rows = [row('a', '{"n":1}', '[1]'), row('b', '{}', null), row('c', '{}', 'null')];
  assert.equal(
    fitting(rows),
    rows.map((one) => ({ row: one, hasParams: true })),
  );
});

test('above the limit, results are omitted first, then params; smaller ones are returned', () => {
  const large = JSON.stringify('x'.repeat(PAGE_MAX_BYTES - 100));
  const rows = [
    row('a', '{}', large),
    row('b', '{}', JSON.stringify('y'.repeat(200))),
    row('c', JSON.stringify({ c: 'z'.repeat(200) }), '1'),
  ];
  const [first, second, third] = fitting(rows);
  assert.is(first?.row.results, large);
  assert.equal([second?.hasParams, second?.row.results], [true, null]);
  assert.equal([third?.hasParams, third?.row.results], [false, '1']);
});

for (const [what, value] of [
  ['numbers', Array.from({ length: 30 * KIB }, () => 1)],
  ['empty lists', Array.from({ length: 20 * KIB }, () => [])],
  ['empty texts', Array.from({ length: 20 * KIB }, () => '')],
  ['short members', Object.fromEntries(Array.from({ length: 6 * KIB }, (_, n) => [`${n}`, 1]))],
  ['text of three bytes a letter', '\u20ac'.repeat(20 * KIB)],
] as const) {
  test(`a page full of ${what} fits a message`, () => {
    const bytes = Buffer.byteLength(JSON.stringify(value));
    const results = value as NonNullable<Invocation['results']>;
    const wire = Invocation.encode(Invocation.fromPartial({ results })).finish().length;
    const ratio = wire / bytes;
    assert.ok(ratio <= WIRE_PER_JSON + 0.01, `${ratio} bytes for a byte`);
    assert.ok(PAGE_MAX_BYTES * ratio < MESSAGE_MAX_BYTES);
  });
}

test('a list omits large values of a page, and GET returns them', async () => {
  await using app = await boot();
  const functionId = await app.publish({ name: 'f' });
  const params = { a: 'x'.repeat(60 * KIB) };
  const made = [];
  for (let count = 0; count < 50; count += 1) made.push(await app.invoke(functionId, params));
  const { clients, asProject } = app;
  const wanted = { versionId: made[0]?.versionId ?? '', limit: 100 };
  const { results, total } = await clients.invocations.listInvocations(wanted, asProject);
  assert.is(total, 50);
  assert.is(results.length, 50, 'no row is missing');
  const shown = results.filter((one) => one.params ?? one.paramsJson).length;
  assert.ok(shown > 30 && shown < 50, `${shown} with params`);
  const { invocation } = await clients.invocations.getInvocation(
    { id: made[0]?.id ?? '' },
    asProject,
  );
  assert.equal(invocation?.params, params);
});

test.run();
