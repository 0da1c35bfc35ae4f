/**
 * Rows of the table "When a session ends" of the guide happen: the status, the reason, the close of
 * clients and the log are those of the row. Those that take a minute are in slow.test.ts.
 */
import { suite } from 'uvu';
import { boot } from '../../../support/service/stack.ts';
import { ENV, SESSION_MAKERS, type When } from './session-makers.ts';
import { SCENES } from './slow-makers.ts';
import { checkEnd, checkMakers, nameOf, rowsBelow } from './tables.ts';

const journey = suite('journey/sessions/ends/sessions');
const rows = rowsBelow('## When a session ends');

/** The rows of that time, with what makes them happen. */
function madeAt(when: When) {
  return rows.flatMap((row) => {
    const [at, make] = SESSION_MAKERS[nameOf(Object.keys(SESSION_MAKERS), row) ?? ''] ?? [];
    return make && at === when ? [{ row, make }] : [];
  });
}

journey('each row of the guide has what makes it happen', () => {
  const slow = SCENES.flatMap((scene) => scene.rows);
  checkMakers(rows, [...Object.keys(SESSION_MAKERS), ...slow]);
});

journey('sessions end as the guide says', async () => {
  await using stack = await boot({ env: ENV });
  const happens = async ({ row, make }: ReturnType<typeof madeAt>[number]): Promise<void> => {
    await checkEnd(stack, row, await make(stack));
  };
  for (const one of madeAt('first')) await happens(one);
  await Promise.all(madeAt('soon').map(happens));
  for (const one of madeAt('alone')) await happens(one);
});

journey.run();
