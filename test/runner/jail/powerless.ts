/**
 * Not a test: kills a given process group without the permission, and prints a line when the
 * refused kill has thrown nothing.
 */
import { openLog } from '../../../proto/common/log.ts';
import { killGroup } from '../../../runner/jail/spawn.ts';

const group = Number(process.argv[2]);
if (!(group > 1)) throw new Error('needs a process group of its own'); // 1 would be everybody
killGroup(group, openLog({ role: 'test', level: 'error', people: false }));
process.stdout.write('lives on');
