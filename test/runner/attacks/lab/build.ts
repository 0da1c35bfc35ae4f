/**
 * Attacks through a whole build, with the real installers, on a machine with a secret. Whatever its
 * end, the build may not contain the secret, run a program, change a file, or block the runner's
 * thread.
 */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, createReadStream, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { build, DEFINES } from '../../../support/runner/build.ts';
import { directory } from '../../../support/runner/project.ts';
import { writeTree } from '../../../support/temp.ts';
import { rowsIn } from '../../../support/whole.ts';
import type { Launcher } from './attack.ts';
import { type BuildAttack, EVIL, EVIL_PATH, RAN } from './build-attack.ts';

const SECRET = 'CANARY-of-the-machine';
/** Ours: of the runner's thread, which all else waits for; a large archive passes it in chunks. */
const CPU_MAX_MS = 1_000;

/** A repository whose package brings its own git, on loopback. */
async function openRepository(dir: string): Promise<AsyncDisposable & { url: string }> {
  const server = createServer(({ url = '' }, response) => {
    const file = createReadStream(join(dir, URL.parse(url, 'http://x')?.pathname ?? ''));
    file.on('error', () => response.writeHead(404).end()).pipe(response);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const dependencies = { two: `git+${url}two.git` };
  writeTree(dir, {
    'source/package.json': JSON.stringify({
      name: 'one',
      version: '1.0.0',
      scripts: { prepare: 'true' },
      dependencies,
    }),
    'source/.npmrc': `git=${EVIL_PATH}\n`,
  });
  const git = (...words: string[]): void => {
    const { status, stderr } = spawnSync('git', words, { cwd: dir });
    assert.is(status, 0, String(stderr));
  };
  git('init', '-q', 'source');
  git('-C', 'source', 'add', '.');
  const author = ['-c', 'user.name=one', '-c', 'user.email=one@example.com'];
  git('-C', 'source', ...author, 'commit', '-q', '-m', 'one');
  git('clone', '-q', '--bare', 'source', 'one.git');
  git('-C', 'one.git', 'update-server-info');
  return {
    url,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

const SANDBOXES: readonly Launcher[] = ['bwrap', 'landlock'];

/** A test for each attack of this run in each jail. */
export function addBuildAttacks(
  tests: ReturnType<typeof suite>,
  attacks: readonly BuildAttack[],
): void {
  const keyOf = (attack: BuildAttack) => attack.ending;
  for (const sandbox of SANDBOXES) {
    for (const attack of rowsIn({ rows: attacks, places: SANDBOXES, keyOf }, sandbox)) {
      tests(`${sandbox}: ${attack.name}`, () => run(attack, sandbox));
    }
  }
}

async function run(attack: BuildAttack, sandbox: Launcher): Promise<void> {
  await using machine = directory({ 'secret.json': JSON.stringify({ secret: SECRET }) });
  const canary = join(machine.path, 'secret.json');
  chmodSync(canary, 0o600);
  await using repository = attack.hasRepository && (await openRepository(machine.path));
  const aim = { canary, url: repository ? repository.url : '' };
  const { 'index.ts': index = '', ...files } = attack.files(aim);
  await using project = directory({
    'evidence.js': '',
    'evil.sh': EVIL,
    'index.ts': `${index}\n${DEFINES}`,
    ...files,
  });
  const script = join(project.path, 'evil.sh');
  chmodSync(script, 0o755);
  await attack.prepare?.(project.path, aim);
  writeTree(machine.path, { npmrc: `@git:registry=${aim.url || 'http://127.0.0.1:9/'}\n` });
  const env = { ...process.env, npm_config_globalconfig: join(machine.path, 'npmrc') };
  const { beside = {}, archive } = attack;
  const done = await build(project.path, {
    sandbox,
    env,
    beside,
    ...(archive === undefined ? {} : { archive: archive() }),
  });
  const { success, failure, stored, text, cpuMs } = done;
  const said = `${text}\n${stored.map(unmapped).join('\n')}`;
  assert.not.match(said, SECRET);
  assert.not.match(said, RAN);
  assert.match(readFileSync(canary, 'utf8'), SECRET);
  if (attack.ending.type === 'built') assert.is(success?.manifests.length, 1, text);
  if (attack.ending.type === 'unbuilt') assert.match(String(failure?.message), attack.ending.why);
  assert.ok(cpuMs < CPU_MAX_MS, `the runner's thread was busy for ${cpuMs} ms`);
  rmSync(project.path, { recursive: true, force: true });
}

/** A bundle with its source map, readable. */
function unmapped(bundle: Buffer): string {
  const text = bundle.toString('utf8');
  const map = /sourceMappingURL=data:application\/json;base64,(\S+)\s*$/.exec(text)?.[1] ?? '';
  return text + Buffer.from(map, 'base64').toString('utf8');
}
