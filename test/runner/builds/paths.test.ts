/** A build's log shows the project's own paths, and none of the machine, in each sandbox. */
import { execPath } from 'node:process';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { withoutPaths } from '../../../runner/builds/install/jail.ts';
import { buildOf, DEFINES } from '../../support/runner/build.ts';

const paths = suite('runner/builds/paths');
const ROOT = new URL('../../..', import.meta.url).pathname.replace(/\/$/, '');
const MANIFEST = JSON.stringify({ dependencies: { x: 'file:./none.tgz' } });
/** Of a missing package; pnpm prints a path of its own code. */
const PNPM_LOCK = `lockfileVersion: '9.0'
importers:
  .:
    dependencies:
      x: {specifier: 'file:./none.tgz', version: 'file:none.tgz'}
packages:
  x@file:none.tgz:
    resolution: {integrity: sha512-aaaa, tarball: 'file:none.tgz'}
    version: 1.0.0
snapshots:
  x@file:none.tgz: {}
`;

const CASES = {
  'an import that is not there': {
    'index.ts': `import './none.js'; import 'left'; import '/abs'; ${DEFINES}`,
  },
  'an import outside the project': {
    'index.ts': `import '../../../../../../../../etc/hostname'; ${DEFINES}`,
  },
  'a package that npm does not find': { 'index.ts': DEFINES, 'package.json': MANIFEST },
  'a package that pnpm does not find': {
    'index.ts': DEFINES,
    'package.json': MANIFEST,
    'pnpm-lock.yaml': PNPM_LOCK,
  },
};

for (const [what, files] of Object.entries(CASES)) {
  paths(`${what}: the error is the same in each sandbox`, async () => {
    const env = { ...process.env, HOME: '/nonexistent' };
    const failures = [];
    for (const sandbox of ['bwrap', 'landlock'] as const) {
      const { text, failure } = await buildOf(files, { sandbox, env });
      for (const own of [ROOT, execPath, '/build/', '/installer/']) {
        assert.not.match(text, own, `${sandbox}: ${own}`);
      }
      const climbing = text.split('\n').filter((line) => /"(?:\.\.\/)+(?:\.\.)?"/.test(line));
      assert.equal(climbing, [], sandbox);
      failures.push(failure?.message);
    }
    assert.ok(failures[0]);
    assert.is(failures[0], failures[1]);
  });
}

paths("paths of mounts are replaced by the jail's names", () => {
  const mounts = [
    { from: '/run/1/project', to: '/build/project' },
    { from: '/run/1/home', to: '/build/home' },
    { from: '/root/.npmrc', to: '/installer/user/.npmrc' },
    { from: '/opt/node', to: '/installer/bin/node' },
    { from: '/opt/service/node_modules/pnpm', to: '/opt/service/node_modules/pnpm' },
    { from: '/usr', to: '/usr' },
  ];
  for (const [text, said] of [
    ['at /run/1/project/a.ts, /build/project/b', 'at a.ts, b'],
    ['in /run/1/project: file:///run/1/project/c', 'in .: c'],
    ['read /root/.npmrc by /opt/node', 'read .npmrc by node'],
    ['at run (/opt/service/node_modules/pnpm/dist/pnpm.cjs:1)', 'at run (pnpm/dist/pnpm.cjs:1)'],
    ['in /usr/share', 'in /usr/share'],
  ] as const) {
    assert.is(withoutPaths(text, mounts), said);
  }
});

paths.run();
