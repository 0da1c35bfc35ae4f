/**
 * Rows of the guide's tables of sessions that need a minute or a service of their own. Those that
 * take minutes happen in a whole run.
 */
import { suite } from 'uvu';
import { equal } from 'uvu/assert';
import { must } from '../../../../proto/common/must.ts';
import { IS_WHOLE } from '../../../support/whole.ts';
import { FUNCTION_SCENES } from './function-makers.ts';
import { SCENES, type Scene } from './slow-makers.ts';
import { checkEnd, rowsBelow } from './tables.ts';

const journey = suite('journey/sessions/ends/slow');

/** Plays the scenes together, as most of the time is waiting. Each checks all of its rows. */
async function play(heading: string, all: readonly Scene[]): Promise<void> {
  const rows = rowsBelow(heading);
  const scenes = all.filter(({ seldom }) => !seldom || IS_WHOLE);
  const names = scenes.flatMap((scene) => scene.rows);
  const checked: string[] = [];
  const check: Parameters<Scene['play']>[0] = async (name, stack, made) => {
    const row = rows.find(([cause]) => cause.startsWith(name));
    await checkEnd(stack, must(row, name), made);
    checked.push(name);
  };
  await Promise.all(scenes.map((scene) => scene.play(check)));
  equal(checked.toSorted(), names.toSorted());
}

journey('sessions end as the guide says, after a minute or without their runner', async () => {
  await Promise.all([
    play('## When a session ends', SCENES),
    play('### Sessions of functions', FUNCTION_SCENES),
  ]);
});

journey.run();
