/** Dependencies as the real npm installs them, and those that it must never see. */
import { join } from 'node:path';
import { create } from 'tar';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { build, buildOf, DEFINES } from '../support/build.ts';
import { directory } from '../support/project.ts';

const builds = suite('runner/install');

builds('a tarball inside the project is a dependency, without a lock file', async () => {
  await using project = directory({
    'index.ts': `import { x } from 'packed'; ${DEFINES} console.debug(x)`,
    'package.json': '{"dependencies": {"packed": "file:./packed.tgz", "tabern": "^0.1.0"}}',
    'package/package.json': '{"name": "packed", "version": "1.0.0", "type": "module"}',
    'package/index.js': 'export const x = 1;',
  });
  const file = join(project.path, 'packed.tgz');
  await create({ gzip: true, cwd: project.path, file, portable: true }, ['package']);
  const { success, text } = await build(project.path);
  assert.is(success?.manifests.length, 1, text);
  assert.match(text, 'warn no package-lock.json or pnpm-lock.yaml');
  assert.match(text, '"tabern" is supplied by the service');
});

builds('a lock file that names our SDK by a path or a registry still installs', async () => {
  for (const entry of [
    {
      'node_modules/tabern': { resolved: '../tabern', link: true },
      '../tabern': { version: '1.0.0' },
    },
    { 'node_modules/tabern': { version: '9.9.9', resolved: 'https://registry.invalid/t.tgz' } },
  ]) {
    const dependencies = { tabern: 'file:../tabern', packed: 'file:packed' };
    const packages = {
      '': { dependencies },
      ...entry,
      'node_modules/packed': { resolved: 'packed', link: true },
      packed: { version: '1.0.0' },
    };
    const { success, text } = await buildOf({
      'index.ts': `import 'packed'; ${DEFINES}`,
      'package.json': JSON.stringify({ dependencies }),
      'package-lock.json': JSON.stringify({ lockfileVersion: 3, requires: true, packages }),
      'packed/package.json': '{"name": "packed", "version": "1.0.0"}',
      'packed/index.js': 'globalThis.packed = 1;',
    });
    assert.is(success?.manifests.length, 1, text);
  }
});

builds('install scripts do not run, and the archive has no say about npm', async () => {
  const scripts = { preinstall: 'exit 7', postinstall: 'exit 8', prepare: 'exit 9' };
  const { success, text } = await buildOf({
    'index.ts': `import 'packed'; ${DEFINES}`,
    'package.json': JSON.stringify({ scripts, dependencies: { packed: 'file:packed' } }),
    '.npmrc': 'ignore-scripts=false\nregistry=http://127.0.0.1:9/\n',
    'packed/package.json': JSON.stringify({ name: 'packed', version: '1.0.0', scripts }),
    'packed/index.js': 'globalThis.packed = 1;',
  });
  assert.is(success?.manifests.length, 1, text);
});

for (const [what, spec] of [
  ['an absolute path', 'file:/etc'],
  ['a path that climbs', 'file:../../secrets'],
  ['a bare path', '../secrets'],
  ['a home path', '~/secrets'],
  ['an encoded path', 'file:%2e%2e/secrets'],
  ['a link', 'link:/etc'],
  ['a repository of the host', 'git+file:///srv/repository'],
] as const) {
  builds(`a dependency outside the project is refused before npm sees it: ${what}`, async () => {
    const dependencies = { stolen: spec };
    const direct = await buildOf({
      'index.ts': DEFINES,
      'package.json': JSON.stringify({ dependencies }),
    });
    assert.match(String(direct.failure?.message), '"stolen" is outside the project');
    const packages = { '': {}, 'node_modules/stolen': { resolved: spec } };
    const locked = await buildOf({
      'index.ts': DEFINES,
      'package.json': '{}',
      'package-lock.json': JSON.stringify({ lockfileVersion: 3, packages }),
    });
    assert.match(String(locked.failure?.message), 'stolen" is outside the project');
  });
}

builds.run();
