/** All programs that the machine lacks are named at the start, instead of failing test by test. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { suite } from 'uvu';
import { equal, is, match, not, ok } from 'uvu/assert';
import { installLine, missingPackages } from './support/run/tools.ts';

const tools = suite('tools');
const NOWHERE = { path: '/nonexistent', isRoot: false, isCi: false };

tools('a machine without the programs prints one line, and no test runs', () => {
  const runner = join(import.meta.dirname, 'run.ts');
  // without a PATH nothing can be installed either
  const { status, stdout } = spawnSync(process.execPath, [runner], {
    env: { PATH: '/nonexistent' },
    encoding: 'utf8',
  });
  is(status, 1);
  match(stdout, /apt-get install -y --no-install-recommends bubblewrap chromium .*ffmpeg/);
  not.match(stdout, /passed/);
});

tools('an ordinary user gets a command with sudo, without programs that only root can use', () => {
  const names = ['bubblewrap', 'chromium', 'chromium-headless-shell', 'ffmpeg', 'curl'];
  const missing = missingPackages(NOWHERE);
  for (const name of names) ok(missing.includes(name), name);
  is(missing.includes('debootstrap'), false);
  match(installLine(names, NOWHERE), /^sudo apt-get install /);
});

tools('the machine that runs the whole suite lacks nothing', () => {
  equal(missingPackages(), []);
});

tools.run();
