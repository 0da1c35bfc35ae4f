/**
 * Rows of the table "When a session ends" of the guide that need a minute or a service of their
 * own. Those that take minutes happen in a whole run.
 */
import { suite } from 'uvu';
import { equal } from 'uvu/assert';
import { must } from '../../../../proto/common/must.ts';
import { IS_WHOLE } from '../../../support/whole.ts';
import { SCENES } from './slow-makers.ts';
import { checkEnd, nameOf, rowsBelow } from './tables.ts';

const journey = suite('journey/sessions/ends/slow');

journey('sessions end as the guide says, after a minute or without their runner', async () => {
  const rows = rowsBelow('## When a session ends');
  const scenes = SCENES.filter(({ seldom }) => !seldom || IS_WHOLE);
  const names = SCENES.flatMap((scene) => scene.rows);
  const checked = new Set<string>();
  const play = ({ play }: (typeof scenes)[number]) =>
    play(async (name, stack, made) => {
      const row = rows.find((one) => nameOf(names, one) === name);
      await checkEnd(stack, must(row, name), made);
      checked.add(name);
    });
  await Promise.all(scenes.map(play)); // most of the time is waiting
  equal([...checked].toSorted(), scenes.flatMap((scene) => scene.rows).toSorted());
});

journey.run();
