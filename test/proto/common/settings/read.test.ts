/** The table as a reader: types, defaults, and whose fault a wrong value is. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ConfigError, type Env } from '../../../../proto/common/env.ts';
import { coreAddress, readSetting, readSettings } from '../../../../proto/common/settings/read.ts';
import { setVariable } from '../../../../proto/common/settings/sources.ts';
import { SETTINGS } from '../../../../proto/common/settings/table.ts';
import { described, memberOf } from '../../../../proto/common/settings/types.ts';
import { tempDirectory } from '../../../support/temp.ts';

const test = suite('proto/common/settings/read');

function refusal(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return '';
}

const port = (env: Env) => refusal(() => readSetting(env, 'PORT'));
const RANGE = 'must be a whole number from 0 to 65535';

test('a value has the type of its row', () => {
  const wholeMs: number = readSetting({ TABERN_LEASE_MS: ' 2000 ' }, 'LEASE_MS');
  const engine: 'node' | 'deno' | undefined = readSetting({}, 'ENGINE');
  const { webhookAllowCidrs } = readSettings(
    { TABERN_WEBHOOK_ALLOW_CIDRS: '::1, ,10.0.0.0/8' },
    'core',
  );
  assert.equal([wholeMs, engine, webhookAllowCidrs], [2_000, undefined, ['::1', '10.0.0.0/8']]);
});

test('a role reads its own settings and ignores a wrong one of another role', () => {
  const env = { TABERN_PORT: 'x' };
  assert.not('port' in readSettings(env, 'core'));
  assert.throws(() => readSettings(env, 'gateway'), /TABERN_PORT/);
});

test('every default is a valid value of its setting', () => {
  for (const role of ['core', 'gateway', 'runner', 'tools'] as const) {
    const defaults = SETTINGS.flatMap(({ name, default: text }) =>
      text === undefined ? [] : [[`TABERN_${name}`, text] as const],
    );
    assert.equal(readSettings(Object.fromEntries(defaults), role), readSettings({}, role));
  }
});

test('an error names the variable, or the file that it names', async () => {
  await using dir = tempDirectory();
  const path = join(dir.path, 'port');
  writeFileSync(path, 'http\n');
  assert.is(port({ TABERN_PORT: 'http' }), `TABERN_PORT ${RANGE}`);
  assert.is(port({ TABERN_PORT_FILE: path }), `TABERN_PORT_FILE (${path}) ${RANGE}`);
  assert.is(port({ TABERN_PORT: '1', TABERN_PORT_FILE: path }), '', 'the variable wins');
  assert.is(port({ TABERN_PORT: '65535' }), '');
});

test('an error names the flag that gave the value, not an overruled one', () => {
  const env: NodeJS.ProcessEnv = { TABERN_PORT_FILE: '/nowhere' };
  setVariable(env, 'TABERN_PORT', { value: 'http', from: 'flag', label: '--port' });
  assert.is(port(env), `--port ${RANGE}`);
  assert.is(port({ ...env, TABERN_HOST: 'x' }), `--port ${RANGE}`, 'in a copy, too');
  assert.is(port({ ...env, TABERN_PORT: 'ftp' }), `TABERN_PORT ${RANGE}`);
});

test('an error never holds the value of a secret', () => {
  for (const [variable, name] of [
    ['TABERN_API_KEY', 'API_KEY'],
    ['TABERN_PROXY', 'PROXY'],
  ] as const) {
    const message = refusal(() => readSetting({ [variable]: 'ftp://hush' }, name));
    assert.match(message, variable);
    assert.not.match(message, 'hush');
  }
});

test('the description includes the valid values', () => {
  const texts = new Map(SETTINGS.map((row) => [row.name, described(row)]));
  assert.match(texts.get('PORT') ?? '', /\(0 to 65535\)$/);
  assert.match(texts.get('ENGINE') ?? '', /\(node, deno\)$/);
  assert.not.match(texts.get('CHROME') ?? '', /\(/);
});

test('a member is a name in lower camel case', () => {
  assert.is(memberOf('PORT'), 'port');
  assert.is(memberOf('BROWSER_ALLOW_CIDRS'), 'browserAllowCidrs');
});

test('core is on its socket unless its address is set', () => {
  assert.is(coreAddress({ data: '/srv/t', core: undefined }), 'unix:/srv/t/core.sock');
  assert.is(coreAddress({ data: '/srv/t', core: 'a:1' }), 'a:1');
});

test.run();
