/** Versions by name: an older one stays listed, and can be run. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
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

test('the version that is named runs, with its own schema and config', async () => {
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

test('a version that is not of the function is not found, a malformed id refused', async () => {
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
