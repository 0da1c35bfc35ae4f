/**
 * The process that deletion.test.ts kills: core deletes a function, and ends in the first removal
 * of its rows. Arguments: data directory, function.
 */
import { startCore } from '../../../core/main.ts';
import { openLog } from '../../../proto/common/log.ts';
import { configOn, KEY } from '../boot.ts';

const [dir = '', id = ''] = process.argv.slice(2);
const config = configOn(dir, { TABERN_CRASH_AT: 'purge-functions:1' });
const core = await startCore(config, openLog({ role: 'core', level: 'silent' }), {});
await core.clients.functions.deleteFunction({ id }, { metadata: { 'x-svc-api-key': KEY } });
await core.close();
