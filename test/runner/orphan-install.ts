/**
 * Not a test: installs the project in the build directory that it is given, and waits to be killed.
 */
import { join } from 'node:path';
import { openLog } from '../../proto/log.ts';
import { install } from '../../runner/install.ts';
import { openInstalled } from '../../runner/installed.ts';
import { openJail } from '../../runner/jail/ladder.ts';

const log = openLog({ role: 'test', level: 'silent' });
const directory = process.argv[2] ?? '';
await install({
  directory,
  projectId: 'p',
  installed: await openInstalled({ dir: join(directory, 'installs'), now: Date.now, log }),
  jail: await openJail({ sandbox: 'auto', log }),
  env: process.env,
  ownLog: log,
  log: { line: () => undefined, close: async () => undefined },
  signal: new AbortController().signal,
});
