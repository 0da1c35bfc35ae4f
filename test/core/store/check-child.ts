/** The core that close-during-check.test.ts kills. Argument: its data directory. */
import { readCoreConfig } from '../../../core/config.ts';
import { startCore } from '../../../core/main.ts';
import { openLog } from '../../../proto/common/log.ts';

const log = openLog({ role: 'core', level: 'silent' });
await startCore(readCoreConfig({ TABERN_DATA: process.argv[2] }), log);
