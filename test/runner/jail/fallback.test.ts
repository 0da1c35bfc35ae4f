/** Where the best rung does not work the next is taken, and the log says why. */
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

test('where bwrap may make no namespace it is Landlock, and the log says why', async () => {
  const bwrap = must(findProgram('bwrap'), 'bwrap');
  const user = ['--unshare-user', '--uid', '1000', '--gid', '1000', '--disable-userns'];
  const around = [bwrap, '--dev-bind', '/', '/', ...user, '--', ...NODE];
  const { stdout, stderr } = await shell(around, { cwd: '/', env: {} });
  assert.is(stdout.trim(), 'landlock', stderr);
  assert.match(stderr, /"why":"bwrap: [^"]*namespace/);
  assert.not.match(stderr, /install bubblewrap/);
});

test('where bwrap works nothing is said of another', async () => {
  const { stdout, stderr } = await shell(NODE, { cwd: '/', env: {} });
  assert.is(stdout.trim(), 'bwrap', stderr);
  assert.not.match(stderr, /"why"|landlock/);
});

test.run();
