/** The settings file, and the line of a value in errors. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { applySettings, checkSettings } from '../../../../gateway/cli/settings/apply.ts';
import { settingsFile } from '../../../../gateway/cli/settings/file.ts';
import { ConfigError } from '../../../../proto/common/env.ts';
import { SETTINGS } from '../../../../proto/common/settings/table.ts';
import { tempDirectory } from '../../../support/temp.ts';

const test = suite('gateway/cli/settings/file');

function open(text: string) {
  const dir = tempDirectory();
  const path = join(dir.path, 'tabern.json');
  writeFileSync(path, text);
  return { path, [Symbol.asyncDispose]: () => dir[Symbol.asyncDispose]() };
}

function refusal(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return '';
}

test('each member has its line, also after lists, escapes and repetitions', async () => {
  const lines = [
    '{ "port": 1, "host":',
    '"\\"port\\": {",',
    '"adLists": ["a:b",',
    '"port"], "logLevel"',
    ': "warn", "lease\\u004ds": 2000,',
    '"port": 2 }',
  ];
  await using file = open(lines.join('\n'));
  const found = settingsFile(file.path).map(({ name, label }) => [name, label.split(':').at(-1)]);
  assert.equal(found, [
    ['PORT', '6'],
    ['HOST', '1'],
    ['AD_LISTS', '3'],
    ['LOG_LEVEL', '5'],
    ['LEASE_MS', '5'],
  ]);
});

test('an error names the line of the file, unless a flag or a variable replaced it', async () => {
  await using file = open('{\n  "host": "a",\n  "port": "http"\n}');
  const started = (given: Record<string, string>, env: NodeJS.ProcessEnv = {}) =>
    refusal(() => {
      applySettings({ ...given, config: file.path }, SETTINGS, env);
      checkSettings(env, ['gateway']);
    });
  assert.match(started({}), `port in ${file.path}:3 must be a whole number`);
  assert.match(started({ port: 'ftp' }), /^--port must be a whole number/);
  assert.match(started({}, { TABERN_PORT: 'x' }), /^TABERN_PORT must be a whole number/);
  assert.is(started({ port: '1' }), '');
  assert.is(started({}, { TABERN_PORT: '1' }), '');
});

test('the error of an unknown member has its line and the nearest setting', async () => {
  await using file = open('{\n"prot": 1 }');
  const message = refusal(() => settingsFile(file.path));
  assert.is(message, `${file.path}:2 has "prot", which is no setting; did you mean "port"?`);
});

test('the refusal of invalid JSON does not contain its text', async () => {
  await using cut = open('{\n"apiKey": "hush",\n}');
  assert.match(
    refusal(() => settingsFile(cut.path)),
    /is not JSON: see line 3$/,
  );
  await using bare = open('{"apiKey": hush}');
  const message = refusal(() => settingsFile(bare.path));
  assert.match(message, /is not JSON/);
  assert.not.match(message, 'hush');
});

test('a role is checked for its own settings only', () => {
  const env = { TABERN_CHROME_SPARES: '257' };
  assert.match(
    refusal(() => checkSettings(env, ['core', 'gateway', 'runner'])),
    /^TABERN_CHROME_SP/,
  );
  assert.is(
    refusal(() => checkSettings(env, ['core', 'gateway'])),
    '',
  );
});

test.run();
