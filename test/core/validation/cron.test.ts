/** Times of cron texts: the grammar, time zones, and changes of the clock. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  checkTimeZone,
  lastTime,
  nextTime,
  normalisedCron,
} from '../../../core/validation/cron.ts';
import { openValidator } from '../../../core/validation/validator.ts';
import { faultOf } from '../../support/fault.ts';

const test = suite('core/validation/cron');
const BERLIN = 'Europe/Berlin';

/** The next times, one after the other. */
function nextTimes(cron: string, from: string, count: number, timeZone = BERLIN): string[] {
  let at = Date.parse(from);
  return Array.from({ length: count }, () => {
    at = nextTime({ cron, timeZone }, at);
    return new Date(at).toISOString();
  });
}

for (const [cron, first] of [
  ['* * * * *', '2026-11-24T10:01:00.000Z'],
  ['*/15 * * * *', '2026-11-24T10:15:00.000Z'],
  ['5,35 8-18/2 * * *', '2026-11-24T10:05:00.000Z'],
  ['0 9 * * MON-fri', '2026-11-25T09:00:00.000Z'],
  ['0 9 1 jan,JUL *', '2027-01-01T09:00:00.000Z'],
  ['0 9 * * 7', '2026-11-29T09:00:00.000Z'],
  ['0 0 13 * FRI', '2026-11-27T00:00:00.000Z'],
  ['0 0 29 2 *', '2028-02-29T00:00:00.000Z'],
  ['  0\t9   * * *  ', '2026-11-25T09:00:00.000Z'],
] as const) {
  test(`"${cron}" has its next time`, () => {
    assert.equal(nextTimes(cron, '2026-11-24T10:00:00Z', 1, 'UTC'), [first]);
  });
}

test('a time is after the given one, and the last time may be the given one', () => {
  const times = { cron: '0 9 * * *', timeZone: 'UTC' };
  const nine = Date.UTC(2026, 10, 24, 9);
  assert.is(nextTime(times, nine), nine + 86_400_000);
  assert.is(nextTime(times, nine - 1), nine);
  assert.is(lastTime(times, nine), nine);
  assert.is(lastTime(times, nine - 1), nine - 86_400_000);
});

test('in the missing hour of spring a fixed time runs after the gap, a step does not', () => {
  assert.equal(nextTimes('30 2 * * *', '2026-03-28T12:00:00Z', 2), [
    '2026-03-29T01:00:00.000Z',
    '2026-03-30T00:30:00.000Z',
  ]);
  assert.equal(nextTimes('*/30 * * * *', '2026-03-29T00:00:00Z', 3), [
    '2026-03-29T00:30:00.000Z',
    '2026-03-29T01:00:00.000Z',
    '2026-03-29T01:30:00.000Z',
  ]);
});

test('in autumn the hour that exists twice: a fixed time runs once, a step in both', () => {
  assert.equal(nextTimes('30 2 * * *', '2026-10-24T12:00:00Z', 2), [
    '2026-10-25T00:30:00.000Z',
    '2026-10-26T01:30:00.000Z',
  ]);
  assert.equal(nextTimes('30 * * * *', '2026-10-25T00:00:00Z', 3), [
    '2026-10-25T00:30:00.000Z',
    '2026-10-25T01:30:00.000Z',
    '2026-10-25T02:30:00.000Z',
  ]);
});

for (const [cron, problem] of [
  ['', 'must have five fields: minute, hour, day of month, month, day of week.'],
  ['* * * *', 'must have five fields: minute, hour, day of month, month, day of week.'],
  ['* * * * * *', 'must have five fields: minute, hour, day of month, month, day of week.'],
  ['@daily', 'must have five fields: minute, hour, day of month, month, day of week.'],
  ['61 * * * *', 'is not valid: Invalid value for minute: 61.'],
  ['* 24 * * *', 'is not valid: Invalid value for hour: 24.'],
  ['*/0 * * * *', 'is not valid: Syntax error, illegal stepping: 0.'],
  ['MON * * * *', 'has no valid minute: use numbers, names, *, lists, ranges and steps.'],
  ['* * L * *', 'has no valid day of month: use numbers, names, *, lists, ranges and steps.'],
  ['* * * * 1#2', 'has no valid day of week: use numbers, names, *, lists, ranges and steps.'],
  ['1,,2 * * * *', 'has no valid minute: use numbers, names, *, lists, ranges and steps.'],
  ['0 0 30 2 *', 'must have a time: no such date exists.'],
  ['0 0 31 4,6,9,11 *', 'must have a time: no such date exists.'],
  [`${'1,'.repeat(200)}1 * * * *`, 'must be at most 256 characters.'],
] as const) {
  test(`"${cron.slice(0, 20)}" is refused by the field's name`, async () => {
    const fault = await faultOf(
      Promise.resolve().then(() => nextTime({ cron, timeZone: 'UTC' }, 0)),
    );
    assert.equal([fault.reason, fault.message], ['INVALID_FIELD', `\`cron\` ${problem}`]);
  });
}

for (const timeZone of ['Europe/Nowhere', '', '+01:00', 'x'.repeat(65), '../etc/passwd', 'Z Z']) {
  test(`the zone "${timeZone.slice(0, 20)}" is refused`, async () => {
    const fault = await faultOf(Promise.resolve().then(() => checkTimeZone(timeZone)));
    assert.is(fault.message, '`timeZone` must be an IANA name, such as `Europe/Berlin` or `UTC`.');
  });
}

test('all minutes as a list fit the limit', () => {
  const minutes = Array.from({ length: 60 }, (_, n) => n).join(',');
  assert.is(normalisedCron(`${minutes} * * * *`).length, 177);
});

test('the thread answers with times, and with the fault of a text', async () => {
  await using validator = openValidator();
  const times = { cron: '0 9 * * *', timeZone: BERLIN };
  const at = Date.UTC(2026, 10, 24, 12);
  assert.is(await validator.nextTime('p', times, at), Date.UTC(2026, 10, 25, 8));
  assert.is(await validator.lastTime('p', times, at), Date.UTC(2026, 10, 24, 8));
  const never = validator.nextTime('p', { ...times, cron: '0 0 30 2 *' }, at);
  assert.is((await faultOf(never)).message, '`cron` must have a time: no such date exists.');
});

test.run();
