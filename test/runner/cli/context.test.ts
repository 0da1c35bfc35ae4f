/** `tabern context`, and the client of core/README.md, against a real gateway and core. */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { downloadContext, uploadContext } from '../../../runner/cli/context.ts';
import { KEY } from '../../core/boot.ts';
import { openUploads } from '../../gateway/routes/files/contexts.ts';
import { errorOf } from '../../support/fault.ts';
import { KEY as SCRIPTED_KEY, service, terminal } from '../../support/servers/scripted.ts';
import { tempDirectory, writeTree } from '../../support/temp.ts';

const test = suite('runner/cli/context');
const run = promisify(execFile);
const README = fileURLToPath(new URL('../../../core/README.md', import.meta.url));
const BIN = fileURLToPath(new URL('../../../gateway/bin.ts', import.meta.url));
const PROFILE = {
  'Local State': '{}',
  'Default/Cookies': 'a marked secret',
  'Default/Cache/data_0': 'a cached response',
};

/** A service with a context, a profile on disk, and a terminal in its folder. */
async function open() {
  const app = await openUploads();
  const dir = tempDirectory();
  writeTree(join(dir.path, 'profile'), PROFILE);
  const screen = terminal(app.gateway.url, dir.path);
  return {
    ...app,
    ...screen,
    cli: { ...screen.cli, apiKey: KEY },
    home: dir.path,
    async [Symbol.asyncDispose]() {
      await dir[Symbol.asyncDispose]();
      await app[Symbol.asyncDispose]();
    },
  };
}

test('a directory is uploaded encrypted, and its download can be uploaded again', async () => {
  await using app = await open();
  const { id } = app.context;
  const asides = () => readdirSync(tmpdir()).filter((name) => name.startsWith('tabern-context-'));
  const before = asides();
  symlinkSync('host-1', join(app.home, 'profile', 'SingletonLock'));
  assert.is(await uploadContext([id, 'profile'], {}, app.cli), 0);
  assert.equal(app.out, [id]);
  const said = app.said.join('\n');
  assert.match(said, /^encrypting profile\nwarning: it is locked.*\nuploaded \d+(?:\.\d)? k?B/);
  assert.equal(asides(), before, 'no temporary directory is left');
  const stored = (await app.download(id)) as Buffer;
  assert.is(stored.includes('a marked secret'), false);

  assert.is(await downloadContext([id, 'backup'], {}, app.cli), 0);
  const file = join(app.home, 'backup', `${id}.tbcx`);
  assert.equal(app.out, [id, file]);
  assert.ok(readFileSync(file).equals(stored));
  const again = await errorOf(downloadContext([id, 'backup'], {}, app.cli));
  assert.match((again as Error).message, 'exists; move it away');
  assert.ok(readFileSync(file).equals(stored));
  assert.is(await uploadContext([id, file], { json: true }, app.cli), 0);
  assert.is(app.out.at(-1), JSON.stringify({ id }));

  const other = await app.create();
  const wrong = await errorOf(uploadContext([other.id, file], {}, app.cli));
  assert.is((wrong as Error).message, '422 The archive is not valid.');
});

test('the error names a missing directory, context or content', async () => {
  await using app = await open();
  const { id } = app.context;
  const said = async (act: Promise<unknown>) => ((await errorOf(act)) as Error).message;
  assert.is(await said(uploadContext([id, 'nowhere'], {}, app.cli)), 'there is no nowhere');
  const hint =
    `The service is ${app.cli.baseUrl}; ` +
    'there, `tabern keys list` shows each key and its project.';
  const unknown = uploadContext(['x', 'profile'], {}, app.cli);
  assert.is(await said(unknown), `404 Context not found. ${hint}`);
  const empty = downloadContext([id, 'backup'], {}, app.cli);
  assert.is(await said(empty), `404 Context content not found. ${hint}`);
});

test('signed URLs receive no key, and their redirects are not followed', async () => {
  await using elsewhere = await service({ 'GET /x': { text: 'stolen' } });
  const location = `${elsewhere.baseUrl}/x`;
  await using storage = await service({
    'GET /signed': { text: 'sealed' },
    'GET /moved': { status: 302, headers: { location }, text: '' },
  });
  await using remote = await service({
    'GET /v1/contexts/a/download': { json: { downloadUrl: `${storage.baseUrl}/signed` } },
    'GET /v1/contexts/b/download': { json: { downloadUrl: `${storage.baseUrl}/moved` } },
    'GET /v1/contexts/c/download': { json: { downloadUrl: 'file:///etc/passwd' } },
  });
  await using dir = tempDirectory();
  const { cli } = terminal(remote.baseUrl, dir.path);
  assert.is(await downloadContext(['a', '.'], {}, cli), 0);
  const said = async (id: string) =>
    ((await errorOf(downloadContext([id, '.'], {}, cli))) as Error).message;
  assert.match(await said('b'), 'redirect');
  assert.match(await said('c'), 'a URL that is none');
  assert.equal(elsewhere.seen, []);
  for (const { headers } of storage.seen) {
    assert.not.ok(JSON.stringify(headers).includes(SCRIPTED_KEY));
  }
  assert.equal(readdirSync(dir.path), ['a.tbcx']);
});

test('the command table has both commands', async () => {
  await using app = await open();
  const { id } = app.context;
  const env = { ...process.env, TABERN_API_KEY: KEY, TABERN_BASE_URL: app.gateway.url };
  const command = (verb: string, directory: string) =>
    run(process.execPath, [BIN, 'context', verb, id, directory], { cwd: app.home, env });
  assert.is((await command('upload', 'profile')).stdout, `${id}\n`);
  const { stdout } = await command('download', '.');
  assert.ok(stdout.endsWith(`${id}.tbcx\n`), stdout);
});

test('the client in core/README.md uploads a directory', async () => {
  await using app = await open();
  const { id } = app.context;
  const [, source = ''] = /```js\n([\s\S]*?)```/.exec(readFileSync(README, 'utf8')) ?? [];
  assert.ok(source.split('\n').filter((line) => /^[^/\s]/.test(line)).length <= 20);
  const client = join(app.home, 'upload.mjs');
  writeFileSync(client, source);
  const words = [client, app.gateway.url, KEY, id, join(app.home, 'profile')];
  const { stdout } = await run(process.execPath, words);
  assert.is(stdout, `200 {"id":"${id}"}\n`);
  assert.ok(Buffer.isBuffer(await app.download(id)));
});

test.run();
