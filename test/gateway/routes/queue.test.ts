/** Pending invocations over REST: their limit, and what frees a slot. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { KEY } from '../../core/boot.ts';
import { ask, json } from '../sessions/runner.ts';
import { openUploads } from './files/contexts.ts';

const test = suite('gateway/routes/queue');
type Shown = { id: string; status: string; message?: string };

async function open(isRemote: boolean) {
  const app = await openUploads({}, isRemote, { TABERN_QUEUE_MAX: '2', TABERN_CONCURRENCY: '1' });
  const functionId = await app.publish({ name: 'f' });
  const post = async (path: string) => {
    const sent = json({});
    const headers = { ...sent.headers, 'x-svc-api-key': KEY };
    const answer = await ask(app.gateway.url, 'POST', `/v1/functions/${path}`, {
      ...sent,
      headers,
    });
    return { ...answer, shown: answer.json as Shown };
  };
  return { ...app, post, invoke: () => post(`${functionId}/invoke`) };
}

for (const isRemote of [false, true]) {
  const where = isRemote ? 'over gRPC' : 'in one process';

  test(`${where}: above the limit, 429 has the number, and an end frees a slot`, async () => {
    await using app = await open(isRemote);
    const [first, second] = [await app.invoke(), await app.invoke()];
    assert.equal([first.status, second.status], [202, 202]);
    const { status, headers, shown } = await app.invoke();
    assert.is(status, 429);
    assert.match(String(shown.message), 'Too many invocations wait in this project');
    assert.match(String(shown.message), '(limit 2, currently 2)');
    assert.match(String(shown.message), 'when one of them starts or is ended');
    assert.equal(
      ['limit', 'remaining', 'reset'].map((name) => headers[`x-ratelimit-${name}`]),
      ['2', '0', '10'],
    );
    assert.is(headers['retry-after'], '10');
    const cancelled = await app.post(`invocations/${second.shown.id}/cancel`);
    assert.is(cancelled.shown.status, 'FAILED');
    const third = await app.invoke();
    assert.is(third.status, 202, 'a place came free');

    const [work] = await app.lease('INVOCATION');
    assert.is(work?.item?.$case === 'invocation' && work.item.value.invocationId, first.shown.id);
    const fourth = await app.invoke();
    assert.is(fourth.status, 202, 'who starts frees a place, too');
    assert.equal(await app.lease('INVOCATION'), [], 'past its concurrency a project waits');
  });
}

test.run();
