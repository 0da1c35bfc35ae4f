/**
 * Rows of the guide's table of sessions of functions happen: the status, the reason, the close of
 * clients and the log are those of the row. Those that take a minute are in slow.test.ts.
 */
import { suite } from 'uvu';
import { boot } from '../../../support/service/stack.ts';
import { FUNCTION_MAKERS, FUNCTION_SCENES, publishHeld } from './function-makers.ts';
import { ENV, type When } from './session-makers.ts';
import { checkEnd, checkMakers, nameOf, rowsBelow } from './tables.ts';

const journey = suite('journey/sessions/ends/functions');
const rows = rowsBelow('### Sessions of functions');

/** The rows of that time, with what makes them happen. */
function madeAt(when: When) {
  return rows.flatMap((row) => {
    const [at, make] = FUNCTION_MAKERS[nameOf(Object.keys(FUNCTION_MAKERS), row) ?? ''] ?? [];
    return make && at === when ? [{ row, make }] : [];
  });
}

journey('each row of the guide has what makes it happen', () => {
  const slow = FUNCTION_SCENES.flatMap((scene) => scene.rows);
  checkMakers(rows, [...Object.keys(FUNCTION_MAKERS), ...slow]);
});

journey('sessions of functions end as the guide says', async () => {
  await using stack = await boot({ env: ENV });
  const place = { stack, held: await publishHeld(stack) };
  const happens = async ({ row, make }: ReturnType<typeof madeAt>[number]): Promise<void> => {
    await checkEnd(stack, row, await make(place));
  };
  for (const one of madeAt('first')) await happens(one);
  await Promise.all(madeAt('soon').map(happens));
  for (const one of madeAt('alone')) await happens(one);
});

journey.run();
