/**
 * Not a test: kills the process group that it is given, as somebody who may not. It lives on when
 * that throws nothing, and says so.
 */
import { openLog } from '../../../proto/common/log.ts';
import { killGroup } from '../../../runner/jail/spawn.ts';

const group = Number(process.argv[2]);
if (!(group > 1)) throw new Error('needs a process group of its own'); // 1 would be everybody
killGroup(group, openLog({ role: 'test', level: 'error', people: false }));
process.stdout.write('lives on');
