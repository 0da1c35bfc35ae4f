/** A dependency out of git: git itself is jailed with npm, and has the same way out. */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { buildOf, DEFINES } from '../support/build.ts';
import { directory } from '../support/project.ts';

const builds = suite('runner/install-git');

/** A repository with a package in it, as files that any server of http can give. */
function repositoryOf(dir: string): void {
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
}

builds('a dependency out of git comes by http from where it may', async () => {
  await using dir = directory({
    'source/package.json': '{"name": "one", "version": "1.2.3", "type": "module"}',
    'source/index.js': `export const name = 'one';`,
  });
  repositoryOf(dir.path);
  const server = createServer(({ url = '' }, response) => {
    const file = createReadStream(join(dir.path, URL.parse(url, 'http://x')?.pathname ?? ''));
    file.on('error', () => response.writeHead(404).end()).pipe(response);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const dependencies = { one: `git+${url}one.git` };
  await using home = directory({ npmrc: `@git:registry=${url}` });
  const named = { ...process.env, npm_config_globalconfig: join(home.path, 'npmrc') };
  const index = `import { name } from 'one'; ${DEFINES} console.debug(name)`;
  const files = { 'index.ts': index, 'package.json': JSON.stringify({ dependencies }) };
  const { text, success } = await buildOf(files, { env: named });
  assert.is(success?.manifests.length, 1, text);
  const { failure } = await buildOf(files);
  assert.match(failure?.message ?? '', 'closed to builds');
  server.close();
  server.closeAllConnections();
});

builds.run();
