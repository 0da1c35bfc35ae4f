/** Builds with the real npm: the outcome that core receives, the log, and the cleanup. */
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { BuildDeps } from '../../../runner/builds/build.ts';
import { build, buildOf, DEFINES, PROJECTS } from '../../support/runner/build.ts';

const builds = suite('runner/builds/run-build');
builds('the project "title" becomes three functions and a bundle', async () => {
  const { success, text, stored } = await build(join(PROJECTS, 'title'));
  assert.equal(success?.manifests.map(({ name }) => name).sort(), ['echo', 'fail', 'title'], text);
  assert.is(success?.bundleBlobId, 'bundle-blob');
  const echo = success?.manifests.find(({ name }) => name === 'echo');
  assert.equal(JSON.parse(String(echo?.sessionConfigJson)), { timeout: 60 });
  assert.equal(JSON.parse(String(echo?.paramsSchemaJson)).maxProperties, 10);
  assert.match(text, /info installing dependencies: .* ci /);
  assert.match(text, 'info built 3 function(s)');
  assert.ok((stored[0]?.length ?? 0) > 1_000_000);
});

builds('the same project for the published SDK builds unchanged, with its zod schema', async () => {
  const { success, text } = await build(join(PROJECTS, 'title-bb'));
  const echo = success?.manifests.find(({ name }) => name === 'echo');
  const schema = JSON.parse(String(echo?.paramsSchemaJson));
  assert.equal(schema.required, ['word', 'times'], text);
  assert.is(schema.properties.times.default, 1);
});

builds('stale manifests of the archive are not published', async () => {
  const { failure } = await buildOf({
    'index.ts': 'export {}',
    '.browserbase/functions/manifests/old.json': '{"name": "old"}',
  });
  assert.is(failure?.code, 'NO_MANIFESTS_FOUND');
});

for (const [what, files, code, message] of [
  ['a syntax error', { 'index.ts': 'let = ;' }, 'BUILD_ERROR', /bundled: index\.ts:1: /],
  ['no entry file', { 'other.ts': '' }, 'BUILD_ERROR', /no file "index\.ts"/],
  [
    'a package.json that is no JSON',
    { 'index.ts': '', 'package.json': '{' },
    'BUILD_ERROR',
    /JSON/,
  ],
  ['a throw at its top level', { 'index.ts': 'throw new Error("early")' }, 'BUILD_ERROR', /early/],
  [
    'a dependency that no registry has',
    { 'index.ts': '', 'package.json': '{"dependencies": {"x": "file:./none.tgz"}}' },
    'BUILD_ERROR',
    /cannot be installed/,
  ],
] as const) {
  builds(`${what} fails the build with a cause and a fix`, async () => {
    const { failure, text, stored } = await buildOf(files as Record<string, string>);
    assert.is(failure?.code, code, text);
    assert.match(String(failure?.message), message);
    assert.match(text, `error ${code}: ${failure?.message}`);
    assert.equal(stored, []);
  });
}

builds('a build above its time limit ends as TIMED_OUT and its installer is killed', async () => {
  const { failure } = await build(join(PROJECTS, 'title'), { timeoutMs: 300 });
  assert.is(failure?.code, 'TIMED_OUT');
});

builds('a build that the runner stops fails with a cause that names the stop', async () => {
  const { failure } = await buildOf({ 'index.ts': DEFINES }, { stopped: AbortSignal.abort() });
  assert.is(failure?.code, 'INTERNAL_ERROR');
  assert.match(String(failure?.message), 'publish again');
});

builds('the outcome is reported after core was unreachable for more than 12 s', async () => {
  const { failure } = await buildOf({ 'other.ts': '' }, { awayMs: 12_500 });
  assert.is(failure?.code, 'BUILD_ERROR');
});

builds('the answer of a host is validated, and its lines are in the log', async () => {
  const hosts: BuildDeps['hosts'] = {
    async introspect({ onLine }) {
      onLine({ level: 'warn', message: 'said by the bundle', timestamp: 0 });
      return { ok: true, manifests: [{ name: 'a/b' }] };
    },
  };
  const { failure, text } = await buildOf({ 'index.ts': DEFINES }, { hosts });
  assert.is(failure?.code, 'BUILD_ERROR');
  assert.match(text, 'warn said by the bundle');
});

builds('the log has the whole stack, the cause its error', async () => {
  const hosts: BuildDeps['hosts'] = {
    async introspect() {
      const message = 'file:///fn/x.mjs:1\n\nRangeError: early\n    at index.ts:3:1';
      return { ok: false, code: 'BUILD_ERROR', message };
    },
  };
  const { failure, text } = await buildOf({ 'index.ts': DEFINES }, { hosts });
  assert.is(failure?.message, 'the entry file cannot be loaded: RangeError: early');
  assert.match(text, 'at index.ts:3:1');
});

builds.run();
