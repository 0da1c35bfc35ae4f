/** Children do not get descriptors that the runner inherited. */
import { spawnSync } from 'node:child_process';
import { openSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';

const inherited = suite('runner/jail/inherited-fds');
const MODULE = fileURLToPath(new URL('../../../runner/jail/inherited-fds.ts', import.meta.url));
/** Opens own files around the call, and prints the descriptors of a child. */
const SCRIPT = `
import { execFileSync } from 'node:child_process';
import { openSync } from 'node:fs';
import { closeInherited } from ${JSON.stringify(MODULE)};
const held = () => String(execFileSync('sh', ['-c', 'ls -l /proc/self/fd']));
const own = openSync('/dev/null');
const before = held();
const { closed } = closeInherited();
console.log(JSON.stringify({ before, closed, after: held(), again: closeInherited() }));
`;

inherited("inherited descriptors are closed, the runner's own stay open", () => {
  const stdio: ('ignore' | 'pipe' | 'inherit' | number)[] = ['ignore', 'pipe', 'inherit'];
  while (stdio.length < 90) stdio.push('ignore'); // a gap, which ends Node's own search
  stdio.push(openSync('/etc/hostname', 'r'));
  const args = ['--input-type=module', '-e', SCRIPT];
  const { stdout, status } = spawnSync(process.execPath, args, { stdio });
  assert.is(status, 0);
  const said = JSON.parse(String(stdout));
  assert.match(said.before, '/etc/hostname');
  assert.ok(said.closed.includes(90), JSON.stringify(said.closed));
  assert.not.match(said.after, '/etc/hostname');
  assert.equal(said.again, { closed: [], left: [] });
});

inherited.run();
