/** Unknown variables are a warning of the command as a process, and stop nothing. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { startCore, tabern } from '../../../support/service/command.ts';
import { tempDirectory } from '../../../support/temp.ts';

const test = suite('gateway/cli/settings/warn');
const WRONG = { TABERN_API_KYE: 'hush', TABERN_PORT: '0' };
const WARNING = 'TABERN_API_KYE is not a setting; did you mean TABERN_API_KEY?';

test('a command warns once on stderr, without the value, and runs', async () => {
  const { code, out, err } = await tabern(['config'], WRONG).ended;
  assert.equal([code, err], [0, `tabern: ${WARNING}\n`]);
  assert.match(out, /TABERN_PORT +0 +variable/);
  assert.not.match(out, 'hush');
});

test('known variables, and commands without settings, give no warning', async () => {
  assert.is((await tabern(['version'], WRONG).ended).err, '');
  assert.is((await tabern(['config'], { TABERN_PORT: '0' }).ended).err, '');
});

test('a role warns in its log and starts', async () => {
  await using dir = tempDirectory();
  await using core = await startCore({ TABERN_DATA: dir.path, ...WRONG });
  const lines = core.run.said.err.split('\n').filter((line) => line.includes('KYE'));
  assert.is(lines.length, 1);
  const { level, role, msg } = JSON.parse(lines[0] ?? '');
  assert.equal({ level, role, msg }, { level: 'warn', role: 'core', msg: WARNING });
  assert.not.match(core.run.said.err, 'hush');
});

test.run();
