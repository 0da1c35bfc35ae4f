/** The runner's settings: defaults, and refused values with the option's name. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { readConfig } from '../../runner/config.ts';

const test = suite('runner/config');
const read = (env: Record<string, string>) =>
  readConfig({ TABERN_DATA: '/srv/tabern', TABERN_RUNNER_TOKEN: 'token'.repeat(7), ...env });

test('sessions have their places and their grace', () => {
  const { sessionsMax, sessionGraceMs, sessionReturnMs, listen } = read({});
  assert.equal(
    { sessionsMax, sessionGraceMs, sessionReturnMs, listen },
    {
      sessionsMax: 25,
      sessionGraceMs: 3_000,
      sessionReturnMs: 30_000,
      listen: undefined,
    },
  );
  assert.is(read({ TABERN_SESSION_GRACE_MS: '0' }).sessionGraceMs, 0);
  for (const [name, value] of [
    ['TABERN_SESSIONS_MAX', '0'],
    ['TABERN_SESSIONS_MAX', '257'],
    ['TABERN_SESSION_GRACE_MS', '-1'],
    ['TABERN_SESSION_GRACE_MS', '60001'],
    ['TABERN_SESSION_GRACE_MS', '3s'],
    ['TABERN_SESSION_RETURN_MS', '600001'],
  ] as const) {
    assert.throws(() => read({ [name]: value }), new RegExp(name), `${name}=${value}`);
  }
});

test('a browser’s memory has a limit unless the setting is 0', () => {
  const limit = (value: string) => read({ TABERN_BROWSER_MEMORY_MB: value }).browserMemoryBytes;
  assert.is(read({}).browserMemoryBytes, 4096 * 2 ** 20);
  assert.is(limit('1'), 2 ** 20);
  assert.is(limit('0'), undefined);
  for (const value of ['-1', '1048577', '4G']) {
    assert.throws(() => limit(value), /TABERN_BROWSER_MEMORY_MB/, value);
  }
});

test('the address of the session server is one that gateways can dial', () => {
  const listen = (value: string) => read({ TABERN_RUNNER_LISTEN: value }).listen;
  assert.equal(listen('127.0.0.5:4750'), { host: '127.0.0.5', port: 4750, tls: undefined });
  assert.equal(listen('[::1]:4750'), { host: '::1', port: 4750, tls: undefined });
  const wrong = ['4750', ':4750', '0.0.0.0:4750', '[::]:4750', '10.0.0.5', '10.0.0.5:0', 'a b:1'];
  for (const value of [...wrong, '10.0.0.5:70000', '10.0.0.5:4750/x', 'http://a:1']) {
    assert.throws(() => listen(value), /TABERN_RUNNER_LISTEN must be host:port/, value);
  }
});

test('the engine is Node unless Deno is set', () => {
  assert.is(read({}).engine, 'node');
  assert.is(read({ TABERN_ENGINE: 'deno' }).engine, 'deno');
  assert.throws(() => read({ TABERN_ENGINE: 'bun' }), /TABERN_ENGINE must be one of node, deno/);
});

test('functions run on warm threads unless fresh is set', () => {
  assert.is(read({}).isolation, 'warm');
  assert.is(read({ TABERN_ISOLATION: 'fresh' }).isolation, 'fresh');
  assert.throws(() => read({ TABERN_ISOLATION: 'none' }), /TABERN_ISOLATION must be one of/);
});

test('labels are names with values, each once', () => {
  const labels = (text: string) => read({ TABERN_RUNNER_LABELS: text }).runnerLabels;
  assert.equal(labels('region=eu, disk=ssd'), [
    { name: 'region', value: 'eu' },
    { name: 'disk', value: 'ssd' },
  ]);
  const many = Array.from({ length: 21 }, (_, n) => `a${n}=b`).join();
  for (const text of [
    'region',
    'region=',
    '=eu',
    'a=b=c',
    'a=1,a=2',
    `a=${'b'.repeat(64)}`,
    many,
  ]) {
    assert.throws(() => labels(text), /^TABERN_RUNNER_LABELS must be up to 20 labels/, text);
  }
});

test.run();
