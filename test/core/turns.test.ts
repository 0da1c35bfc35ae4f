import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openTurns } from '../../core/turns.ts';
import { errorOf } from '../support/fault.ts';

const test = suite('core/turns');
const never = new AbortController().signal;

test('no more than that many have a turn, and who waits gets one in order', async () => {
  const turns = openTurns(2);
  const [first, second] = [await turns.take(never), await turns.take(never)];
  const got: number[] = [];
  const noted = async (number: number) => {
    const turn = await turns.take(never);
    got.push(number);
    return turn;
  };
  const third = noted(3);
  const fourth = noted(4);
  await new Promise(setImmediate);
  assert.equal(got, []);
  first[Symbol.dispose]();
  const late = noted(5);
  await third;
  assert.equal(got, [3], 'who comes when one is passed on takes none from who waited');
  second[Symbol.dispose]();
  (await fourth)[Symbol.dispose]();
  await late;
  assert.equal(got, [3, 4, 5]);
});

test('who leaves takes no turn with it', async () => {
  const turns = openTurns(1);
  const held = await turns.take(never);
  const leaving = new AbortController();
  const left = errorOf(turns.take(leaving.signal));
  leaving.abort(new Error('left'));
  assert.is(((await left) as Error).message, 'left');
  held[Symbol.dispose]();
  (await turns.take(never))[Symbol.dispose]();
  assert.is(((await errorOf(turns.take(leaving.signal))) as Error).message, 'left');
});

test.run();
