/** Results and params as text, from the runner to the HTTP answer; core is the real one. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { must } from '../../../proto/common/must.ts';
import { KEY } from '../../core/boot.ts';
import { faultOf } from '../../support/fault.ts';
import { openUploads } from '../routes/files/contexts.ts';

const test = suite('gateway/rest/large-results');

/** 6 MiB, less its brackets, of members that each would become an object. */
const MANY = `[${Array.from({ length: 780_000 }, () => '{"a":1}').join()}]`;
/** In ms of CPU time, of this whole process, client included. As values it takes 2,500 and more. */
const GET_MAX_MS = 700;

async function openRun(isRemote: boolean) {
  const app = await openUploads({}, isRemote);
  const functionId = await app.publish({ name: newId() });
  return {
    ...app,
    functionId,
    async run(resultsJson: string, params: Record<string, unknown> = {}) {
      const { id } = await app.invoke(functionId, params);
      const { leaseId } = must((await app.lease('INVOCATION'))[0], 'work');
      const outcome = { $case: 'resultsJson', value: resultsJson } as const;
      const end = { leaseId, outcome, sessionStartMs: 0, steps: [] };
      await app.clients.runners.completeInvocation(end, app.asRunner);
      return id;
    },
    fetch: (path: string, init: RequestInit = {}) =>
      fetch(app.gateway.url + path, {
        ...init,
        headers: { 'x-svc-api-key': KEY, 'content-type': 'application/json' },
      }),
  };
}

async function cpuMs(run: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  await run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

for (const isRemote of [false, true]) {
  const where = isRemote ? 'over gRPC' : 'in one process';

  test(`${where}: a result of 6 MiB is read in little CPU time, unchanged`, async () => {
    await using app = await openRun(isRemote);
    const path = `/v1/functions/invocations/${await app.run(MANY)}`;
    await (await app.fetch(path)).arrayBuffer(); // the connection and the code are warm
    let text = '';
    const ms = await cpuMs(async () => {
      text = await (await app.fetch(path)).text();
    });
    assert.ok(ms < GET_MAX_MS, `${ms} ms`);
    assert.ok(text.includes(`"results":${MANY}`), 'the text is the handler’s');
    const { status, params, resultsJson } = JSON.parse(text);
    assert.equal([status, params, resultsJson], ['COMPLETED', {}, undefined]);
  });

  test(`${where}: text that no value can represent is unchanged`, async () => {
    await using app = await openRun(isRemote);
    const odd = '{"a":1e999,"b":"\\ud800","a":9007199254740993}';
    const id = await app.run(odd);
    const text = await (await app.fetch(`/v1/functions/invocations/${id}`)).text();
    assert.ok(text.includes(`"results":${odd}`), text);
    const list = await (await app.fetch(await versionPath(app, id))).text();
    assert.ok(list.includes(`"results":${odd}`), list);
  });
}

async function versionPath(
  { clients, asProject }: Awaited<ReturnType<typeof openRun>>,
  id: string,
) {
  const { invocation } = await clients.invocations.getInvocation({ id }, asProject);
  return `/v1/functions/versions/${invocation?.versionId}/invocations`;
}

test('a gRPC caller receives values up to a limit, and text beyond it', async () => {
  await using app = await openRun(true);
  const read = async (id: string) =>
    (await app.clients.invocations.getInvocation({ id }, app.asProject)).invocation;
  const small = await read(await app.run('{"a":[1]}', { b: 2 }));
  assert.equal([small?.results, small?.resultsJson], [{ a: [1] }, undefined]);
  assert.equal([small?.params, small?.paramsJson], [{ b: 2 }, undefined]);
  const large = await read(await app.run(MANY));
  assert.is(large?.results, undefined);
  assert.is(large?.resultsJson, MANY);
});

test('params of any shape within a body of 1 MiB are refused in little CPU time', async () => {
  await using app = await openRun(false);
  const path = `/v1/functions/${app.functionId}/invoke`;
  const large = Array.from({ length: 500_000 }, () => 1);
  const bodies: [string, object][] = [
    [path, { params: { large } }],
    [path, { sessionCreateParams: { userMetadata: { large } } }],
    ['/v1/sessions', { browserSettings: { fingerprint: { large } } }],
    ['/v1/sessions', { proxies: large }],
    ['/v1/webhooks', { endpoint: 'https://a.test/', eventTypes: large.map(() => '') }],
  ];
  for (const [at, body] of bodies) {
    const sent = JSON.stringify(body).slice(0, 1 << 20);
    let text = '';
    const ms = await cpuMs(async () => {
      const answer = await app.fetch(at, { method: 'POST', body: sent });
      text = `${answer.status} ${await answer.text()}`;
    });
    assert.match(text, /^400 .*(at most|not valid JSON)/, text);
    assert.ok(ms < 1_000, `${ms} ms: ${text}`);
  }
  const both = JSON.stringify({ paramsJson: '{}' });
  const answer = await app.fetch(path, { method: 'POST', body: both });
  assert.match(await answer.text(), /`paramsJson` is not a known field/);
});

test('text of a gRPC caller becomes params, or is refused by name', async () => {
  await using app = await openRun(true);
  const invoke = (paramsJson: string) =>
    app.clients.invocations.invokeFunction(
      { functionId: app.functionId, params: undefined, sessionCreateParams: undefined, paramsJson },
      app.asProject,
    );
  assert.equal((await invoke('{"a":[1,null]}')).invocation?.params, { a: [1, null] });
  for (const wrong of ['', '[]', '1', 'null', '{', `{"a":${'['.repeat(200)}${']'.repeat(200)}}`]) {
    const fault = await faultOf(invoke(wrong));
    assert.equal([fault.reason, fault.facts['field']], ['INVALID_FIELD', 'params'], wrong);
  }
  assert.match((await faultOf(invoke(`{"a":"${'x'.repeat(70_000)}"}`))).message, /at most 65536/);
});

test.run();
