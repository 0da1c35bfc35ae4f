/** A pnpm lock file may name directories of the installer's jail; none with a secret is copied. */
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { buildOf, DEFINES } from '../../../support/runner/build.ts';
import { directory } from '../../../support/runner/project.ts';

const lock = suite('runner/builds/install/pnpm-lock');
const CANARY = 'canary-of-the-operator';

function lockOf(folder: string): string {
  return `lockfileVersion: '9.0'
settings:
  autoInstallPeers: true
  excludeLinksFromLockfile: false
importers:
  .:
    dependencies:
      dep:
        specifier: file:./dep
        version: file:${folder}
packages:
  dep@file:${folder}:
    resolution: {directory: ${folder}, type: directory}
snapshots:
  dep@file:${folder}: {}
`;
}

const CASES = [
  ['bwrap', '../../installer'],
  ['bwrap', '../../installer/user'],
  ['landlock', 'HOME'],
] as const;

for (const [sandbox, folder] of CASES) {
  lock(`${sandbox}: pnpm copies none of the operator's settings from ${folder}`, async () => {
    await using dir = directory({ npmrc: `//registry.invalid/:_authToken=${CANARY}\n` });
    const npmrc = join(dir.path, 'npmrc');
    const env = { ...process.env, HOME: dir.path, npm_config_userconfig: npmrc };
    const named = folder === 'HOME' ? `../../../../../../../..${dir.path}` : folder;
    for (const file of ['npmrc', '.npmrc']) {
      const { stored, text } = await buildOf(
        {
          'index.ts': `import x from 'dep/${file}' with { type: 'text' };
            ${DEFINES} console.debug(x)`,
          'package.json': '{"name":"p","version":"1.0.0","dependencies":{"dep":"file:./dep"}}',
          'pnpm-lock.yaml': lockOf(named),
          'dep/package.json': '{"name":"dep","version":"1.0.0"}',
        },
        { env, sandbox },
      );
      assert.not.match(text, CANARY);
      assert.is(Buffer.concat(stored).includes(CANARY), false, 'the token is in the bundle');
    }
  });
}

lock.run();
