/** The command table: its commands, and the help, reference and completion built from it. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { readCoreConfig } from '../../../core/config.ts';
import { wordsOf } from '../../../gateway/cli/command.ts';
import { completionScript } from '../../../gateway/cli/completion.ts';
import { flagsOf } from '../../../gateway/cli/flags.ts';
import { parser } from '../../../gateway/cli/program.ts';
import { applySettings, shownSettings } from '../../../gateway/cli/settings/apply.ts';
import { everyCommand, GROUPS } from '../../../gateway/cli/table.ts';
import { gatewayConfig } from '../../../gateway/config.ts';
import { ConfigError, type Env } from '../../../proto/common/env.ts';
import { SETTINGS } from '../../../proto/common/settings/table.ts';
import { memberOf } from '../../../proto/common/settings/types.ts';
import { readConfig } from '../../../runner/config.ts';
import { tempDirectory } from '../../support/temp.ts';

const test = suite('gateway/cli/commands');
const REPOSITORY = fileURLToPath(new URL('../../..', import.meta.url));
/** For fault tests, and from `tabern serve` to its runner: operators do not set them. */
const NOT_SETTINGS = ['TABERN_CRASH_AT', 'TABERN_PREPARED_BY'];

test('the example of each command calls it, and its help shows it', () => {
  const program = parser(() => undefined);
  for (const command of everyCommand()) {
    const words = wordsOf(command.usage);
    assert.match(command.example, new RegExp(`tabern ${words.join(' ')}( |\\)|$)`), command.usage);
    assert.not.match(command.description, /\.$/, command.usage);
    let found = program;
    for (const word of words) {
      const next = found.commands.find((one) => one.name() === word);
      assert.ok(next, command.usage);
      found = next;
    }
    let help = '';
    found.configureOutput({ writeOut: (text) => (help += text) });
    found.outputHelp();
    assert.ok(help.includes(`Example:\n  ${command.example}`), command.usage);
    for (const { flags } of flagsOf(command)) assert.ok(help.includes(flags), flags);
  }
  for (const name of Object.keys(GROUPS)) {
    assert.ok(
      everyCommand().some(({ usage }) => usage.startsWith(`${name} `)),
      name,
    );
  }
});

test('every command that prints an object has --json', () => {
  for (const { usage, kind, ...command } of everyCommand()) {
    if (kind !== 'project' && kind !== 'operator') continue;
    const flags = flagsOf({ usage, kind, ...command }).map((one) => one.flags);
    assert.ok(flags.includes('--json'), usage);
  }
});

test('each variable that the program reads is a setting, and each setting is read', () => {
  const text = ['core', 'gateway', 'runner', 'proto']
    .flatMap((folder) => sources(join(REPOSITORY, folder)))
    .filter((path) => !path.endsWith('proto/common/settings/table.ts'))
    .map((path) => readFileSync(path, 'utf8'))
    .join('\n');
  const read = new Set((text.match(/'TABERN_[A-Z_]+'/g) ?? []).map((one) => one.slice(1, -1)));
  const known = SETTINGS.map(({ name }) => `TABERN_${name}`);
  const missing = [...read].filter((name) => !known.includes(name) && !NOT_SETTINGS.includes(name));
  assert.equal(missing, [], 'add them to proto/common/settings/table.ts');
  const isRead = (name: string) =>
    text.includes(`'${name}'`) ||
    text.includes(`'TABERN_${name}'`) ||
    new RegExp(`\\b${memberOf(name)}\\b`).test(text);
  const unread = SETTINGS.map(({ name }) => name).filter((name) => !isRead(name));
  assert.equal(unread, [], 'nobody reads these');
});

test('each default of the table is the role’s', () => {
  const readers: Record<string, (env: Env) => object> = {
    core: readCoreConfig,
    gateway: gatewayConfig,
    runner: (env) => ({
      ...readConfig({ TABERN_RUNNER_TOKEN: 'x'.repeat(32), ...env }),
      env: undefined,
    }),
  };
  for (const { name, roles, default: fallback } of SETTINGS) {
    if (fallback === undefined) continue;
    for (const role of roles) {
      const reader = readers[role];
      if (!reader) continue;
      const said = JSON.stringify(reader({ [`TABERN_${name}`]: fallback }));
      assert.is(said, JSON.stringify(reader({})), `${role} ${name}`);
    }
  }
});

test('flags precede variables, variables the file, and config shows the source', async () => {
  await using dir = tempDirectory();
  const path = join(dir.path, 'tabern.json');
  const file = { port: 1, host: 'a', adLists: ['x', 'y'], logLevel: 'warn', apiKey: 'secret-key' };
  writeFileSync(path, JSON.stringify(file));
  const env: NodeJS.ProcessEnv = { TABERN_PORT: '2', TABERN_HOST: 'b', TABERN_PROXY: 'http://p' };
  applySettings({ port: '3', config: path }, SETTINGS, env);
  assert.equal(
    [env['TABERN_PORT'], env['TABERN_HOST'], env['TABERN_AD_LISTS'], env['TABERN_LOG_LEVEL']],
    ['3', 'b', 'x,y', 'warn'],
  );
  const shown = new Map(shownSettings(env).map(({ name, ...rest }) => [name, rest]));
  const told = (name: string) => [shown.get(name)?.value, shown.get(name)?.from];
  assert.equal(told('TABERN_PORT'), ['3', 'flag']);
  assert.equal(told('TABERN_HOST'), ['b', 'variable']);
  assert.equal(told('TABERN_AD_LISTS'), ['x,y', 'settings file']);
  assert.equal(told('TABERN_API_KEY'), ['(set)', 'settings file']);
  assert.equal(told('TABERN_PROXY'), ['(set)', 'variable']);
  assert.equal(told('TABERN_SWEEP_MS'), ['1000', 'default']);
});

test('the error of an invalid settings file names it', async () => {
  await using dir = tempDirectory();
  const path = join(dir.path, 'tabern.json');
  const refused = (config: string): string => {
    try {
      applySettings({ config }, SETTINGS, {});
    } catch (error) {
      if (error instanceof ConfigError) return error.message;
      throw error;
    }
    return '';
  };
  assert.match(refused(path), /tabern\.json cannot be read/);
  for (const [text, says] of [
    ['{', /is not JSON/],
    ['[]', /must be an object/],
    ['{"prot":1}', /has "prot", which is no setting/],
    ['{"port":{}}', /port in .* must be a text, a number or a list/],
    ['{"config":"x"}', /no setting/],
  ] as const) {
    writeFileSync(path, text);
    assert.match(refused(path), says, text);
  }
  assert.is(memberOf('WEBHOOK_CA'), 'webhookCa');
});

test('bash completes commands, their words and their flags', () => {
  const script = completionScript('bash', everyCommand());
  const offered = (...typed: string[]): string[] => {
    const words = ['tabern', ...typed].map((word) => `'${word}'`).join(' ');
    const line = `COMP_WORDS=(${words}); COMP_CWORD=${typed.length}`;
    const ask = `${script}\n${line}; _tabern; echo "\${COMPREPLY[@]}"`;
    return execFileSync('bash', ['-c', ask], { encoding: 'utf8' }).trim().split(' ');
  };
  assert.equal(offered('ke'), ['keys']);
  assert.equal(offered('keys', ''), ['create', 'list', 'revoke']);
  assert.ok(offered('keys', 'list', '--pro').includes('--project'));
  assert.ok(offered('keys', 'revoke', 'abc', '--js').includes('--json'));
  for (const shell of ['zsh', 'fish']) {
    assert.match(completionScript(shell, everyCommand()), /redeliver/);
  }
  assert.throws(() => completionScript('tcsh', everyCommand()), /bash, zsh, fish/);
});

function sources(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((one) => one.isFile() && /\.[cm]?[jt]s$/.test(one.name))
    .map((one) => join(one.parentPath, one.name))
    .filter((path) => !path.includes('proto/gen') && !path.includes('node_modules'));
}

test.run();
