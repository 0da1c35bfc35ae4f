/** npm and pnpm on real lock files, twice: the second build of a project runs neither. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLog } from '../../../../proto/common/log.ts';
import { type Installed, openInstalled } from '../../../../runner/builds/install/cache.ts';
import { buildOf, DEFINES } from '../../../support/runner/build.ts';
import { directory } from '../../../support/runner/project.ts';
import { tempDirectory } from '../../../support/temp.ts';

const log = openLog({ role: 'test', level: 'silent' });
const builds = suite('runner/builds/install/package-managers');

const ZOD = { 'package.json': '{"dependencies": {"zod": "4.6.7"}}' };
const USES_ZOD = `import { z } from 'zod'; ${DEFINES} globalThis.schema = z.string();`;

/** The lock file that npm or pnpm generates. */
async function lockOf(command: readonly string[], name: string): Promise<Record<string, string>> {
  await using dir = directory(ZOD);
  const env = { ...process.env, npm_config_store_dir: join(dir.path, 'store') };
  const made = spawnSync(command[0] ?? '', command.slice(1), { cwd: dir.path, env });
  assert.is(made.status, 0, String(made.stderr) + String(made.stdout));
  return { [name]: readFileSync(join(dir.path, name), 'utf8') };
}

for (const [name, command] of [
  ['package-lock.json', ['npm', 'install', '--package-lock-only']],
  ['pnpm-lock.yaml', ['pnpm', 'install', '--lockfile-only']],
] as const) {
  builds(`${name}: only the first build of each project runs the installer`, () =>
    withInstalls(async (installed) => {
      const files = { ...ZOD, ...(await lockOf(command, name)), 'index.ts': USES_ZOD };
      const first = await buildOf(files, { installed });
      assert.is(first.success?.manifests.length, 1, first.text);
      assert.match(first.text, 'installing dependencies: ');
      const second = await buildOf(files, { installed });
      assert.is(second.success?.manifests.length, 1, second.text);
      assert.match(second.text, 'dependencies are of an earlier build');
      assert.not.match(second.text, 'installing dependencies: ');
      assert.equal(second.stored, first.stored, 'the same bundle');
      const other = await buildOf(files, { installed, projectId: 'other' });
      assert.match(other.text, 'installing dependencies: ');
      assert.equal(other.stored, first.stored);
    }),
  );
}

builds('without a lock file one is generated, and the next build uses the cached install', () =>
  withInstalls(async (installed) => {
    const files = { ...ZOD, 'index.ts': USES_ZOD };
    const first = await buildOf(files, { installed });
    assert.match(first.text, 'install --package-lock-only');
    assert.match(first.text, /info installing dependencies: \S+ ci /);
    const second = await buildOf(files, { installed });
    assert.match(second.text, 'install --package-lock-only');
    assert.not.match(second.text, ' ci ');
    assert.equal(second.stored, first.stored);
  }),
);

builds("pnpm runs no hook of the project, and is the service's own version", async () => {
  const hook = `throw new Error('the hook ran');`;
  const { success, text } = await buildOf({
    ...(await lockOf(['pnpm', 'install', '--lockfile-only'], 'pnpm-lock.yaml')),
    'package.json': '{"packageManager": "pnpm@9.0.0", "dependencies": {"zod": "4.6.7"}}',
    'pnpm-workspace.yaml': 'registry: http://127.0.0.1:9/\npnpmfile: .pnpmfile.cjs\n',
    '.pnpmfile.cjs': hook,
    'index.ts': USES_ZOD,
  });
  assert.is(success?.manifests.length, 1, text);
  assert.not.match(text, 'the hook ran');
});

builds('a pnpm lock file that differs from package.json is refused', async () => {
  const { failure, text } = await buildOf({
    ...(await lockOf(['pnpm', 'install', '--lockfile-only'], 'pnpm-lock.yaml')),
    'package.json': '{"dependencies": {"zod": "4.6.6"}}',
    'index.ts': USES_ZOD,
  });
  assert.match(String(failure?.message), 'cannot be installed');
  assert.match(text, /lockfile.*not up to date|outdated/i);
});

async function withInstalls(test: (installed: Installed) => Promise<void>): Promise<void> {
  await using dir = tempDirectory();
  await test(await openInstalled({ dir: dir.path, now: Date.now, log }));
}

builds.run();
