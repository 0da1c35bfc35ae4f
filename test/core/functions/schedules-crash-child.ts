/**
 * The process that schedules.test.ts kills: core at that time, which starts the invocation of a due
 * schedule and ends within the transaction. Arguments: data directory, time.
 */
import { startCore } from '../../../core/main.ts';
import { openLog } from '../../../proto/common/log.ts';
import { configOn } from '../boot.ts';

const [dir = '', at = ''] = process.argv.slice(2);
const config = configOn(dir, { TABERN_CRASH_AT: 'run-schedule:1' });
await startCore(config, openLog({ role: 'core', level: 'silent' }), { now: () => Number(at) });
