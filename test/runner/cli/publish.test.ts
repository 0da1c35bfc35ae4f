/** `tabern publish` against a real HTTP server: what it packs, sends and prints. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { list } from 'tar';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { CliError } from '../../../runner/cli/config.ts';
import { ignored, publish } from '../../../runner/cli/publish.ts';
import { errorOf } from '../../support/fault.ts';
import { directory } from '../../support/runner/project.ts';
import { FUNCTION, ID, KEY, LINE, service, terminal } from '../../support/servers/scripted.ts';

const cli = suite('runner/cli/publish');

const FILES = {
  'index.ts': 'export {}',
  'lib/more.ts': 'export {}',
  'package.json': '{}',
  '.gitignore': 'secret.txt\n',
  'secret.txt': 'x',
  '.env.local': 'x',
  'tabern_data/keys/master.key': 'x',
  'node_modules/a/index.js': 'x',
};

function namesIn(archive: Buffer): Promise<string[]> {
  const names: string[] = [];
  return new Promise((resolve, reject) => {
    const parser = list({ onReadEntry: (entry) => void names.push(entry.path) });
    parser.on('end', () => resolve(names));
    parser.on('error', reject);
    parser.end(archive);
  });
}

cli('publish uploads the project, waits, and prints the built functions', async () => {
  await using project = directory(FILES);
  await using remote = await service({
    'POST /v1/functions/builds': { status: 202, json: { id: ID, status: 'PENDING' } },
    [`GET /v1/functions/builds/${ID}`]: [
      { json: { id: ID, status: 'PENDING' } },
      { status: 503, json: { message: 'The service is starting.' } },
      { json: { id: ID, status: 'RUNNING' } },
      { json: { id: ID, status: 'COMPLETED', builtFunctions: [FUNCTION] } },
    ],
    [`GET /v1/functions/builds/${ID}/logs`]: [{ json: { logs: [] } }, { json: { logs: [LINE] } }],
  });
  const { cli: opened, out, said } = terminal(remote.baseUrl, project.path);
  assert.is(await publish('./index.ts', {}, opened), 0);
  assert.equal(out, [`title\t${ID}\tversion v-1`]);
  assert.is(said.filter((line) => line.includes('unpacked 3 entries')).length, 1);

  const sent = remote.seen[0];
  assert.is(sent?.headers['x-svc-api-key'], KEY);
  const form = await new Response(new Uint8Array(sent?.body ?? []), {
    headers: { 'content-type': String(sent?.headers['content-type']) },
  }).formData();
  assert.equal(JSON.parse(String(form.get('metadata'))), { entrypoint: 'index.ts' });
  const archive = form.get('archive') as File;
  assert.is(archive.name, 'archive.tar.gz');
  const names = await namesIn(Buffer.from(await archive.arrayBuffer()));
  const files = names
    .map((name) => name.replace(/^\.\//, ''))
    .filter((name) => !/\/$|^$/.test(name));
  assert.equal(files.sort(), ['.gitignore', 'index.ts', 'lib/more.ts', 'package.json']);
});

cli('a failed build prints its cause and its log, and exits 1', async () => {
  await using project = directory(FILES);
  const cause = { code: 'BUILD_ERROR', message: 'index.ts:1: it is wrong' };
  const build = { id: ID, status: 'FAILED', cause };
  await using remote = await service({
    'POST /v1/functions/builds': { status: 202, json: { id: ID } },
    [`GET /v1/functions/builds/${ID}`]: { json: build },
    [`GET /v1/functions/builds/${ID}/logs`]: { json: { logs: [LINE] } },
  });
  const { cli: opened, out, said } = terminal(remote.baseUrl, project.path);
  assert.is(await publish('index.ts', { json: true }, opened), 1);
  assert.equal(JSON.parse(out.join()), build);
  assert.ok(said.includes('build failed: BUILD_ERROR: index.ts:1: it is wrong'));
  assert.ok(said.some((line) => line.endsWith('info unpacked 3 entries')));
});

for (const [what, argument, problem] of [
  ['a missing file', 'none.ts', /there is no file none\.ts/],
  ['a file above the project', '../x.ts', /outside the current directory/],
  ['a folder', 'lib', /there is no file lib/],
  ['a file that is no source', 'package.json', /is not a source file/],
  ['an ignored entry', 'node_modules/a/index.js', /is not published/],
] as const) {
  cli(`publish refuses ${what}, and sends nothing`, async () => {
    await using project = directory(FILES);
    await using remote = await service({});
    const { cli: opened } = terminal(remote.baseUrl, project.path);
    const error = await errorOf(publish(argument, {}, opened));
    assert.instance(error, CliError);
    assert.match((error as Error).message, problem);
    assert.equal(remote.seen, []);
  });
}

cli('publish refuses an archive above 25 MB before a request is sent', async () => {
  await using project = directory(FILES);
  const noise = Buffer.alloc(26 * 1024 * 1024);
  for (let at = 0; at < noise.length; at += 4)
    noise.writeUInt32LE((Math.random() * 2 ** 32) >>> 0, at);
  writeFileSync(join(project.path, 'big.bin'), noise);
  await using remote = await service({});
  const { cli: opened } = terminal(remote.baseUrl, project.path);
  const error = await errorOf(publish('index.ts', {}, opened));
  assert.match((error as Error).message, 'packs to more than 25 MB');
  assert.equal(remote.seen, []);
});

cli('the last matching rule of .gitignore decides, after the fixed rules', () => {
  const lines = ['# c', '', '*.tmp', '/top', 'folder/', 'a/**/z', '!keep.tmp', 'x.y?', '!.env'];
  const more = ['[pq].c', '\\#d', 'folder2/', '!folder2/in', ''];
  const isIgnored = ignored([...lines, ...more].join('\n'));
  for (const [path, isFolder, expected] of [
    ['deep/in/a.tmp', false, true],
    ['keep.tmp', false, false],
    ['top', false, true],
    ['deep/top', false, false],
    ['folder', true, true],
    ['folder', false, false],
    ['Folder', true, false],
    ['src/Build', true, false],
    ['Build', true, false],
    ['p.c', false, true],
    ['r.c', false, false],
    ['#d', false, true],
    ['folder2/in', false, true],
    ['a/b/c/z', false, true],
    ['a/z', false, true],
    ['x.yz', false, true],
    ['xxyz', false, false],
    ['src/dist', true, false],
    ['dist', true, true],
    ['packages/a/node_modules', true, true],
    ['.env', false, true],
    ['src/.env.local', false, true],
    ['index.ts', false, false],
  ] as const) {
    assert.is(isIgnored(path, isFolder), expected, path);
  }
});

cli.run();
