/** Dependencies that the real npm installs, and those that are refused before. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { create } from 'tar';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLog } from '../../../../proto/common/log.ts';
import { must } from '../../../../proto/common/must.ts';
import { openPlace } from '../../../../runner/builds/build-directory.ts';
import { installSpec } from '../../../../runner/builds/install/jail.ts';
import { openJail } from '../../../../runner/jail/open.ts';
import { errorOf } from '../../../support/fault.ts';
import { until } from '../../../support/poll.ts';
import { build, buildOf, DEFINES } from '../../../support/runner/build.ts';
import { installOne } from '../../../support/runner/install-one.ts';
import { directory } from '../../../support/runner/project.ts';
import { familyOf, stillRunning } from '../../../support/service/processes.ts';
import { tempDirectory } from '../../../support/temp.ts';

const log = openLog({ role: 'test', level: 'silent' });

const builds = suite('runner/builds/install/install');

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

builds('a lock file that names the SDK by a path or a registry still installs', async () => {
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

builds("install scripts do not run, and the archive's npm settings are ignored", async () => {
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

/** A package of the machine that no package of a project can read. */
async function withSecret(test: (path: string) => Promise<void>): Promise<void> {
  await using machine = directory({
    'package/package.json': '{"name": "stolen", "version": "1.0.0", "type": "module"}',
    'package/index.js': 'export const secret = "of the machine";',
  });
  const file = join(machine.path, 'secret.tgz');
  await create({ gzip: true, cwd: machine.path, file, portable: true }, ['package']);
  await test(file);
}

for (const sandbox of ['auto', 'none'] as const) {
  builds(`${sandbox}: a file of this machine in a dependency's dependencies is not installed`, () =>
    withSecret(async (secret) => {
      await using project = directory({
        'index.ts': `import { secret } from 'stolen'; ${DEFINES} console.debug(secret)`,
        'package.json': '{"dependencies": {"packed": "file:./packed.tgz"}}',
        'package/package.json': JSON.stringify({
          name: 'packed',
          version: '1.0.0',
          dependencies: { stolen: `file:${secret}` },
        }),
      });
      const file = join(project.path, 'packed.tgz');
      await create({ gzip: true, cwd: project.path, file, portable: true }, ['package']);
      const { failure, stored, text } = await build(project.path, { sandbox });
      const isRead = stored.some((bundle) => bundle.includes('of the machine'));
      assert.is(isRead, false, text);
      // without a sandbox npm finds it, and the lock file that it makes names it
      const says = sandbox === 'none' ? 'is outside the project' : 'cannot be installed';
      assert.match(String(failure?.message), says);
    }),
  );
}

builds("an installer cannot read the operator's home or data, or write outside", () =>
  withSecret(async (secret) => {
    const env = { ...process.env, HOME: dirname(secret), npm_execpath: '' };
    const jail = await openJail({ sandbox: 'auto', log });
    await using temp = tempDirectory();
    await using place = await openPlace(temp.path, jail);
    const look = `
      const { readdirSync, writeFileSync } = require('node:fs');
      const said = (act) => { try { return act() ?? 'done'; } catch ({ code }) { return code; } };
      const paths = ${JSON.stringify([dirname(secret), '/root', '/home', '/var'])};
      console.log(JSON.stringify({
        seen: paths.map((path) => said(() => readdirSync(path))),
        built: readdirSync('/build'),
        written: ['/usr/x', '/etc/x', '/x', '/build/x', '/build/project/x', '/build/home/x']
          .map((path) => said(() => writeFileSync(path, ''))),
        here: process.cwd(), env: Object.keys(process.env),
      }));`;
    const spec = await installSpec(
      { file: process.execPath, args: ['-e', look] },
      { place, env: { ...env, SECRET: 'x' }, egress: { localPort: 1, socket: undefined } },
    );
    const { child, exited } = jail.launch({ ...spec, argv: (at) => spec.argv(at).slice(1) });
    let text = '';
    child.stdout?.on('data', (bytes) => {
      text += bytes;
    });
    await Promise.all([exited, once(child, 'close')]);
    const said = JSON.parse(text);
    assert.equal(said.seen, ['ENOENT', 'ENOENT', 'ENOENT', 'ENOENT']);
    assert.equal(said.built, ['home', 'project']);
    assert.equal(said.written, ['EROFS', 'EROFS', 'EROFS', 'EROFS', 'done', 'done']);
    assert.is(said.here, '/build/project');
    assert.not(said.env.includes('SECRET'));
  }),
);

builds('an installer ends when its runner is killed', async () => {
  const asked = Promise.withResolvers<void>();
  // a registry that never answers
  const registry = createServer(() => asked.resolve()).listen(0, '127.0.0.1');
  await once(registry, 'listening');
  const url = `http://127.0.0.1:${(registry.address() as AddressInfo).port}/`;
  await using dir = tempDirectory();
  const script = join(import.meta.dirname, 'orphan-install.ts');
  const env = { ...process.env, npm_config_registry: url };
  const runner = spawn(process.execPath, [script, dir.path], { env, stdio: 'inherit' });
  await asked.promise;
  const family = familyOf(must(runner.pid, 'a pid'));
  assert.ok(family.length >= 3, JSON.stringify(family));
  runner.kill('SIGKILL');
  await until(() => stillRunning(family).length === 0);
  registry.close();
  registry.closeAllConnections();
});

for (const sandbox of ['bwrap', 'landlock'] as const) {
  builds(`${sandbox}: an aborted install leaves no process and no open port`, async () => {
    const stopping = new AbortController();
    // a registry that never answers
    const registry = createServer(() => stopping.abort(new Error('given up')));
    await once(registry.listen(0, '127.0.0.1'), 'listening');
    const url = `http://127.0.0.1:${(registry.address() as AddressInfo).port}/`;
    await using dir = tempDirectory();
    const env = { ...process.env, npm_config_registry: url };
    const left = await errorOf(
      installOne({ dir: dir.path, sandbox, env, signal: stopping.signal }),
    );
    assert.match(String(left), 'given up');
    registry.close();
    registry.closeAllConnections();
    const servers = () =>
      process.getActiveResourcesInfo().filter((what) => what.includes('Server'));
    await until(() => familyOf(process.pid).length === 1 && servers().length === 0);
  });
}

builds.run();
