/** Counts of answers by their time. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  addTimes,
  countOf,
  RANGES_MS,
  rangeOf,
  withinMs,
} from '../../../core/delivery/answer-times.ts';

const test = suite('core/delivery/answer-times');

const timesOf = (...all: number[]) =>
  all.reduce<number[]>((sum, ms) => {
    const one = Array.from({ length: rangeOf(ms) + 1 }, (_, n) => (n === rangeOf(ms) ? 1 : 0));
    return addTimes(sum, one);
  }, []);

test('a time is in the first range that it does not exceed', () => {
  assert.is(rangeOf(0), 0);
  assert.is(rangeOf(5), 0);
  assert.is(rangeOf(6), 1);
  assert.is(rangeOf(15_000), RANGES_MS.length - 1);
  assert.is(rangeOf(15_001), RANGES_MS.length);
});

test('the share of answers is within the end of its range', () => {
  const times = timesOf(
    ...Array.from({ length: 95 }, () => 40),
    ...Array.from({ length: 5 }, () => 900),
  );
  assert.is(countOf(times), 100);
  assert.is(withinMs(times, 0.95), 50);
  assert.is(withinMs(times, 0.96), 1_000);
  assert.is(withinMs(addTimes(times, timesOf(900)), 0.95), 1_000);
});

test('without answers there is no time, and beyond the last range no limit', () => {
  assert.is(withinMs([], 0.95), undefined);
  assert.is(withinMs([0, 0], 0.95), undefined);
  assert.is(withinMs(timesOf(20_000), 0.95), Number.POSITIVE_INFINITY);
});

test.run();
