/**
 * Rows of the guide's tables of connections happen: connections end before their sessions with the
 * close of the row, and upgrades are refused with its status.
 */
import { suite } from 'uvu';
import { equal, is, match } from 'uvu/assert';
import { must } from '../../../../proto/common/must.ts';
import { boot } from '../../../support/service/stack.ts';
import { IS_WHOLE } from '../../../support/whole.ts';
import { CLOSES, GATEWAY_CLOSES, openApart, REFUSALS, ROLE_REFUSALS } from './connection-makers.ts';
import { cell, checkMakers, type Row, rowsBelow, type Session } from './tables.ts';

const journey = suite('journey/sessions/ends/connections');
const closes = rowsBelow('### Connections that end before their session');
const refusals = rowsBelow('### Refused connections');

/** Of the row whose cause begins so. */
function resultOf(rows: readonly Row[], name: string): string {
  const row = rows.find(([cause]) => cause.startsWith(name));
  return must(must(row, name)[1], 'a cell');
}

journey('each row of the guide has what makes it happen', () => {
  checkMakers(closes, [...Object.keys(CLOSES), ...Object.keys(GATEWAY_CLOSES)]);
  checkMakers(refusals, [...Object.keys(REFUSALS), ...Object.keys(ROLE_REFUSALS)]);
});

type Place = { call<T>(path: string): Promise<T> };
type Made = { session: Session; closed: Promise<string> };

async function checkClose({ call }: Place, name: string, { session, closed }: Made): Promise<void> {
  match(await closed, cell(resultOf(closes, name)), name);
  const { status } = await call<Session>(`/v1/sessions/${session.id}`);
  is(status, 'RUNNING', `${name}: the session goes on`);
}

journey('connections end, and are refused, as the guide says', async () => {
  await using stack = await boot({ env: { TABERN_SESSIONS_MAX: '20' } });
  const closing = Object.entries(CLOSES).filter(([, [pace]]) => pace === 'usual' || IS_WHOLE);
  const refusing = Object.entries(REFUSALS);
  await Promise.all([
    ...closing.map(async ([name, [, make]]) => checkClose(stack, name, await make(stack))),
    ...refusing.map(async ([name, make]) => checkStatus(name, await make(stack))),
  ]);
});

journey('the same of a gateway that ends, without core and without the runner', async () => {
  await using apart = await openApart();
  for (const [name, make] of Object.entries(GATEWAY_CLOSES)) {
    await checkClose(apart, name, await make(apart));
  }
  for (const [name, make] of Object.entries(ROLE_REFUSALS)) {
    checkStatus(name, await make(apart));
  }
});

function checkStatus(name: string, statuses: readonly number[]): void {
  const wanted = Number(resultOf(refusals, name));
  equal(statuses, Array(statuses.length).fill(wanted), name);
}

journey.run();
