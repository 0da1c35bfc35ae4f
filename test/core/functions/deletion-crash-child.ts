/**
 * The process that deletion.test.ts kills: core deletes a function, and ends in the first removal
 * of its rows. Arguments: data directory, function.
 */
import { readCoreConfig } from '../../../core/config.ts';
import { startCore } from '../../../core/main.ts';
import { openLog } from '../../../proto/common/log.ts';
import { KEY } from '../boot.ts';

const [dir = '', id = ''] = process.argv.slice(2);
const own = { TABERN_DATA: dir, TABERN_KEY_PAIRS: '0', TABERN_CRASH_AT: 'purge-functions:1' };
const core = await startCore(readCoreConfig(own), openLog({ role: 'core', level: 'silent' }), {});
await core.clients.functions.deleteFunction({ id }, { metadata: { 'x-svc-api-key': KEY } });
await core.close();
