/**
 * Not a test: installs the project in the build directory that it is given, and waits to be killed.
 */
import { openLog } from '../../proto/log.ts';
import { install } from '../../runner/install.ts';
import { openJail } from '../../runner/jail/ladder.ts';

const log = openLog({ role: 'test', level: 'silent' });
await install({
  directory: process.argv[2] ?? '',
  jail: await openJail({ sandbox: 'auto', log }),
  env: process.env,
  log: { line: () => undefined, close: async () => undefined },
  signal: new AbortController().signal,
});
