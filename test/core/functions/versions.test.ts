/** Versions by name: an older one stays listed, and can be run. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { functionHandlers } from '../../../core/functions/functions.ts';
import type { Store } from '../../../core/store/types.ts';
import { openLog } from '../../../proto/common/log.ts';
import { must } from '../../../proto/common/must.ts';
import { faultOf } from '../../support/fault.ts';
import { type Booted, boot } from '../boot.ts';

const test = suite('core/functions/versions');

async function invoke(app: Booted, functionId: string, versionId?: string, params = {}) {
  const request = { functionId, params, sessionCreateParams: undefined };
  const named = versionId === undefined ? request : { ...request, versionId };
  const answer = await app.clients.invocations.invokeFunction(named, app.asProject);
  return must(answer.invocation, 'invocation');
}

/** A function with two versions; the newer one takes `n` alone. Newest first. */
async function twice(app: Booted): Promise<{ functionId: string; versions: string[] }> {
  const functionId = await app.publish({ name: 'f', config: '{"timeout":100}' });
  const schema = { type: 'object', required: ['n'], properties: { n: { type: 'number' } } };
  await app.publish({ name: 'f', schema: JSON.stringify(schema) });
  const { results } = await app.clients.functions.listVersions({ functionId }, app.asProject);
  return { functionId, versions: results.map(({ id }) => id) };
}

test('a wrong limit is refused before the store is read, which may fail', async () => {
  const failing = () => Promise.reject(new Error('the store failed'));
  const store = { getFunction: failing, listVersions: failing } as unknown as Store;
  const log = openLog({ role: 'test', level: 'silent' });
  const rest = { files: { remove: failing }, log, now: Date.now, closing: AbortSignal.abort() };
  const { listVersions } = functionHandlers({ store, ...rest });
  const request = { functionId: newId(), limit: 0 };
  const caller = { projectId: newId(), call: { metadata: {} } } as never;
  const fault = await faultOf(listVersions(request, caller));
  assert.is(fault.reason, 'INVALID_FIELD');
  await new Promise((resolve) => setImmediate(resolve)); // a rejection without a handler ends here
});

test('the named version runs, with its own schema and config', async () => {
  await using app = await boot();
  const { functionId, versions } = await twice(app);
  assert.is(versions.length, 2, 'the older one stays listed');
  const [newer, older] = versions;
  const back = await invoke(app, functionId, older?.toUpperCase());
  assert.is(back.versionId, older);
  const [work] = await app.lease('INVOCATION');
  const item = work?.item?.$case === 'invocation' ? work.item.value : undefined;
  assert.equal([item?.versionId, item?.timeoutMs], [older, 100_000]);
  assert.is((await invoke(app, functionId, newer, { n: 1 })).versionId, newer);
  assert.is((await invoke(app, functionId, undefined, { n: 1 })).versionId, newer);
  assert.is((await faultOf(invoke(app, functionId, newer))).reason, 'INVALID_FIELD');
});

test('a version of another function is a 404, a malformed id a 400', async () => {
  await using app = await boot();
  const { functionId, versions } = await twice(app);
  const other = await app.publish({ name: 'g' });
  const version = must(versions[1], 'older version');
  for (const [of, named] of [
    [other, version],
    [newId(), version],
    [functionId, newId()],
  ] as const) {
    const fault = await faultOf(invoke(app, of, named));
    assert.equal([fault.reason, fault.message], ['RESOURCE_NOT_FOUND', 'Version not found.']);
  }
  for (const named of ['', 'x']) {
    assert.is((await faultOf(invoke(app, functionId, named))).facts['field'], 'versionId');
  }
});

test.run();
