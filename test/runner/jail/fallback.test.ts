/** The best working backend is selected, and the log gives the reason for a worse one. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { findProgram } from '../../../runner/jail/prlimit.ts';
import { shell } from '../../support/clients/journey.ts';

const test = suite('runner/jail/fallback');
const ROOT = new URL('../../../', import.meta.url).href;
const OPEN = `const { openLog } = await import('${ROOT}proto/common/log.ts');
  const { openJail } = await import('${ROOT}runner/jail/open.ts');
  const log = openLog({ role: 'test', level: 'info', people: false });
  console.log((await openJail({ sandbox: 'auto', log })).level);`;
const NODE = [process.execPath, '--input-type=module', '-e', OPEN];

test('without namespaces Landlock is selected, and the log gives the reason', async () => {
  const bwrap = must(findProgram('bwrap'), 'bwrap');
  const user = ['--unshare-user', '--uid', '1000', '--gid', '1000', '--disable-userns'];
  const around = [bwrap, '--dev-bind', '/', '/', ...user, '--', ...NODE];
  const { stdout, stderr } = await shell(around, { cwd: '/', env: {} });
  assert.is(stdout.trim(), 'landlock', stderr);
  assert.match(stderr, /"why":"bwrap: [^"]*namespace/);
  assert.not.match(stderr, /install bubblewrap/);
});

test('a working bwrap is selected without a warning', async () => {
  const { stdout, stderr } = await shell(NODE, { cwd: '/', env: {} });
  assert.is(stdout.trim(), 'bwrap', stderr);
  assert.not.match(stderr, /"why"|landlock/);
});

test.run();
