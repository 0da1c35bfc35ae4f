/** A core's store in a process of its own: prints `leader`, then the id of each created session. */
import { openPostgres } from '../../../../core/store/server.ts';
import { openLog } from '../../../../proto/common/log.ts';
import { until } from '../../../support/poll.ts';
import { newSession } from '../engines.ts';

const [url = '', projectId = ''] = process.argv.slice(2);
const log = openLog({ role: 'core', level: 'silent' });
const options = { url, directUrl: url, isPooled: false, durability: 'full', log } as const;
const store = await openPostgres(options);
await until(() => store.isLeader());
process.stdout.write('leader\n');
for (;;) {
  const { id } = await store.createSession(newSession(projectId));
  process.stdout.write(`${id}\n`);
}
