/** The core that close-during-check.test.ts kills. Argument: its data directory. */
import { startCore } from '../../../core/main.ts';
import { openLog } from '../../../proto/common/log.ts';
import { must } from '../../../proto/common/must.ts';
import { configOn } from '../boot.ts';

const log = openLog({ role: 'core', level: 'silent' });
await startCore(configOn(must(process.argv[2], 'a data directory')), log);
