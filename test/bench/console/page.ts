/**
 * `node test/bench/console/page.ts [sessions] [runs]`: how long the console's list of sessions
 * takes from the start of its navigation until its rows are there and the next frame is drawn, in a
 * browser whose CPU is slowed down 4 times, with many sessions behind it. Beside it the same in a
 * browser that is not slowed down. The goal is 300 ms.
 */
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { addSessions } from '../../core/console/projects.ts';
import { logIn, openConsole } from '../../support/clients/console.ts';
import { until } from '../../support/poll.ts';
import { boot } from '../../support/service/stack.ts';
import { show } from '../support/figures.ts';
import { settled } from '../support/settled.ts';

const SESSIONS = Number(process.argv[2] ?? 1_000_000);
const RUNS = Number(process.argv[3] ?? 20);
const SLOWER = 4;
/** In the page: the time of the first frame with rows, since the start of the navigation. */
const WATCH = `new MutationObserver((_, observer) => {
  if (!document.querySelector('tbody tr')) return;
  observer.disconnect();
  requestAnimationFrame(() => setTimeout(() => (globalThis.drawnAt = performance.now())));
}).observe(document, { childList: true, subtree: true });`;

await using stack = await boot({ isDirect: true });
await stack.kill('SIGTERM');
const db = new Sqlite(join(stack.dataDir, 'tabern.db'));
addSessions({ db } as never, stack.projectId, SESSIONS);
db.exec('ANALYZE');
db.close();
await stack.restart();
await settled(stack.pid);

await using person = await openConsole(stack);
await logIn(person, stack);
const { page, context } = person;
await page.addInitScript({ content: WATCH });
const cdp = await context.newCDPSession(page);
const [plain, slow]: [number[], number[]] = [[], []];
for (let run = 0; run < RUNS; run += 1) {
  plain.push(await drawn(1));
  slow.push(await drawn(SLOWER));
}
console.log(`${SESSIONS} sessions`);
show('list of sessions', plain);
show(`the same, CPU ${SLOWER} times slower`, slow, plain);

async function drawn(rate: number): Promise<number> {
  await cdp.send('Emulation.setCPUThrottlingRate', { rate });
  await page.goto(`${stack.url}/console/p/${stack.projectId}/sessions`);
  return await until(() => page.evaluate<number | undefined>('globalThis.drawnAt'));
}
