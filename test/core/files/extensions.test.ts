/**
 * Extensions: created from a valid zip, offered to sessions that name them, removed when deleted.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Env } from '../../../proto/common/env.ts';
import { must } from '../../../proto/common/must.ts';
import { faultOf } from '../../support/fault.ts';
import { manifest, zipOf } from '../../support/runner/zips.ts';
import { blobParts, boot } from '../boot.ts';

const test = suite('core/files/extensions');

async function openExtensions(env: Env = {}) {
  const app = await boot(env);
  const { clients, asProject } = app;
  const write = async (bytes: Uint8Array | string) =>
    (await clients.blobs.writeBlob(blobParts({ kind: 'EXTENSION' }, bytes), asProject)).blobId;
  const create = (blobId: string, fileName = 'my.zip') =>
    clients.extensions.createExtension({ blobId, fileName }, asProject);
  return {
    ...app,
    write,
    create,
    extensions: clients.extensions,
    async made() {
      const blobId = await write(await zipOf({ 'manifest.json': manifest() }));
      return { blobId, ...must((await create(blobId)).extension, 'extension') };
    },
    isThere: (blobId: string) => existsSync(join(app.dir, 'blobs', blobId)),
  };
}

test('a valid zip becomes an extension, readable by its id until it is deleted', async () => {
  await using app = await openExtensions();
  const { id, fileName, blobId, createdAt } = await app.made();
  assert.equal([fileName, createdAt?.getTime()], ['my.zip', app.clock.now()]);
  const read = await app.extensions.getExtension({ id: id.toUpperCase() }, app.asProject);
  assert.is(read.extension?.id, id);
  assert.is(app.isThere(blobId), true);
  await app.extensions.deleteExtension({ id }, app.asProject);
  assert.is(app.isThere(blobId), false);
  for (const missing of [id, 'nonsense', crypto.randomUUID()]) {
    const own = { id: missing };
    for (const call of [app.extensions.getExtension, app.extensions.deleteExtension]) {
      const fault = await faultOf(call(own, app.asProject) as Promise<unknown>);
      assert.equal([fault.row.http, fault.message], [404, 'Extension not found.']);
    }
  }
});

test("a project's extension waits for at most one check of another project", async () => {
  await using app = await openExtensions();
  const { operators, blobs, extensions } = app.clients;
  await operators.createProject({ name: 'second', limits: {} }, app.asOperator);
  const { key } = await operators.createApiKey({ project: 'second', name: '' }, app.asOperator);
  const second = { metadata: { 'x-svc-api-key': must(key, 'a key') } };
  const large = await zipOf({ 'manifest.json': manifest(), zeros: Buffer.alloc(100 << 20) });
  const flood = await Promise.all([1, 2, 3, 4].map(() => app.write(large)));
  const small = blobParts({ kind: 'EXTENSION' }, await zipOf({ 'manifest.json': manifest() }));
  const { blobId } = await blobs.writeBlob(small, second);
  let checked = 0;
  const all = flood.map(async (id) => {
    await app.create(id);
    checked += 1;
  });
  await extensions.createExtension({ blobId, fileName: 'small.zip' }, second);
  assert.ok(checked <= 1, `${checked} checks of the first project came before`);
  await Promise.all(all);
});

test('an invalid zip is refused with the reason, and its blob is removed', async () => {
  await using app = await openExtensions();
  const cases: [string | Buffer, string, string][] = [
    ['nothing', 'a.zip', '`file` is no extension: it is not a valid zip: '],
    [await zipOf({ 'a/b': '' }), 'a.zip', '`file` is no extension: manifest.json must be at the'],
    [await zipOf({ 'manifest.json': manifest() }), '', '`fileName` must be 1 to 255 characters.'],
    [await zipOf({ 'manifest.json': manifest() }), 'x'.repeat(256), '`fileName` must be 1 to 255'],
  ];
  for (const [bytes, name, message] of cases) {
    const blobId = await app.write(bytes);
    const fault = await faultOf(app.create(blobId, name));
    assert.equal([fault.row.http, fault.message.slice(0, message.length)], [400, message]);
    assert.is(app.isThere(blobId), false);
  }
});

test('only a new EXTENSION blob becomes an extension', async () => {
  await using app = await openExtensions();
  const { id, blobId } = await app.made();
  assert.is((await faultOf(app.create(blobId))).reason, 'INVALID_FIELD');
  assert.is(app.isThere(blobId), true);
  assert.ok((await app.extensions.getExtension({ id }, app.asProject)).extension);
  const archive = await app.upload('archive');
  for (const other of [archive, 'x', crypto.randomUUID()]) {
    assert.is((await faultOf(app.create(other))).reason, 'RESOURCE_NOT_FOUND');
  }
});

test('a project has a maximum of extensions; a refused one leaves no blob', async () => {
  await using app = await openExtensions({ TABERN_EXTENSIONS_MAX: '2' });
  const [first] = [await app.made(), await app.made()];
  const blobId = await app.write(await zipOf({ 'manifest.json': manifest() }));
  const { row, reason, message, facts } = await faultOf(app.create(blobId));
  assert.equal([row.http, reason, facts], [429, 'TOO_MANY_EXTENSIONS', { limit: 2 }]);
  assert.match(message, 'at most 2 extensions');
  assert.is(app.isThere(blobId), false);
  await app.extensions.deleteExtension({ id: first.id }, app.asProject);
  assert.ok((await app.made()).id);
});

test('a session loads its deleted extension; a new session cannot name it', async () => {
  await using app = await openExtensions();
  const { clients, asProject, asRunner } = app;
  const { id, blobId } = await app.made();
  const functionId = await app.publish({ name: 'f', config: `{"extensionId":"${id}"}` });
  await app.invoke(functionId);
  await app.extensions.deleteExtension({ id }, asProject);
  assert.is(app.isThere(blobId), true);
  const { leaseId, item } = must((await app.lease('INVOCATION'))[0], 'work');
  const offered = item?.$case === 'invocation' ? item.value.extension : undefined;
  assert.equal([offered?.extensionId, offered?.blobId], [id, blobId]);
  assert.match(offered?.sha256 ?? '', /^[0-9a-f]{64}$/);
  const fault = await faultOf(app.invoke(functionId));
  assert.equal([fault.row.http, fault.message], [404, 'Extension not found.']);
  const end = { leaseId, outcome: undefined, sessionStartMs: 0, steps: [] };
  await clients.runners.completeInvocation(end, asRunner);
  // The next deletion takes what was left for that session alone.
  const other = await app.made();
  await app.extensions.deleteExtension({ id: other.id }, asProject);
  assert.equal([app.isThere(blobId), app.isThere(other.blobId)], [false, false]);
});

test('a session loads several extensions, deleted ones too, and five at most', async () => {
  await using app = await openExtensions();
  const ids: string[] = [];
  for (let n = 0; n < 6; n++) ids.push((await app.made()).id);
  const [first = '', second = '', third = '', ...more] = ids;
  const config = (extensions: string[]) =>
    JSON.stringify({ extensionId: first, browserSettings: { extensions } });
  const functionId = await app.publish({
    name: 'several',
    config: config([second, first.toUpperCase(), third.toUpperCase()]),
  });
  await app.invoke(functionId);
  const { blobId } = await app.made();
  await app.extensions.deleteExtension({ id: third }, app.asProject);
  const { item } = must((await app.lease('INVOCATION'))[0], 'work');
  if (item?.$case !== 'invocation') throw new Error('no invocation');
  const { extension, moreExtensions } = item.value;
  const loaded = [extension, ...moreExtensions].map((one) => one?.extensionId);
  assert.equal(loaded, [first, second, third].sort());
  assert.is(app.isThere(blobId), true);
  const unknown = await app.publish({ name: 'deleted', config: config([third]) });
  assert.is((await faultOf(app.invoke(unknown))).message, 'Extension not found.');
  const many = await app.publish({ name: 'many', config: config([second, ...more]) });
  assert.ok(await app.invoke(many), 'five in all');
  const six = await app.publish({
    name: 'six',
    config: config([second, ...more, (await app.made()).id]),
  });
  const fault = await faultOf(app.invoke(six));
  assert.equal([fault.row.http, fault.facts['field']], [400, 'browserSettings.extensions']);
});

test('a session without an extension loads none', async () => {
  await using app = await openExtensions();
  await app.made();
  await app.invoke(await app.publish({ name: 'f' }));
  const { item } = must((await app.lease('INVOCATION'))[0], 'work');
  assert.is(item?.$case === 'invocation' && item.value.extension, undefined);
});

test.run();
