/**
 * Times of a cron text in a time zone, by croner. A text is a tenant's: it is at most 256
 * characters, only the five standard fields are read, and a text without a time is refused.
 * Ours: at a change of the clock a text with one minute and one hour runs once, at the first of two
 * times or after the gap; other texts run at both times, and at no time within the gap.
 */
import { Cron } from 'croner';
import { invalidField } from '../../proto/rpc/errors.ts';

/** Ours, in characters: a list of all minutes has 169. */
const CRON_MAX_CHARS = 256;
const MONTHS = 'jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec';
const DAYS = 'sun|mon|tue|wed|thu|fri|sat';
/** The names that a field may have. */
const FIELDS = [
  { field: 'minute', names: '' },
  { field: 'hour', names: '' },
  { field: 'day of month', names: '' },
  { field: 'month', names: MONTHS },
  { field: 'day of week', names: DAYS },
].map(({ field, names }) => {
  const value = `(?:\\d{1,2}${names && `|${names}`})`;
  const item = `(?:\\*|${value}(?:-${value})?)(?:/\\d{1,2})?`;
  return { field, form: new RegExp(`^${item}(?:,${item})*$`, 'i') };
});
/** A name only: an offset such as +01:00 has no rules of a zone. */
const ZONE = /^[A-Za-z][\w+/-]{0,63}$/;

export type Times = { cron: string; timeZone: string };

/** The first time after that time, in Unix milliseconds. Throws INVALID_FIELD. */
export function nextTime(times: Times, after: number): number {
  const found = parsed(times).nextRun(new Date(after));
  if (found === null) throw invalidField('cron', 'must have a time: no such date exists.');
  return found.getTime();
}

/** The last time that is not after that time; undefined when there is none. */
export function lastTime(times: Times, until: number): number | undefined {
  // croner's bound is exclusive, and its times are whole seconds
  const [found] = parsed(times).previousRuns(1, new Date(until + 1));
  return found?.getTime();
}

/** The text with single spaces. Throws INVALID_FIELD. */
export function normalisedCron(text: string): string {
  if (text.length > CRON_MAX_CHARS) {
    throw invalidField('cron', `must be at most ${CRON_MAX_CHARS} characters.`);
  }
  const fields = text.trim().split(/[ \t]+/);
  if (fields.length !== FIELDS.length) {
    const names = FIELDS.map(({ field }) => field).join(', ');
    throw invalidField('cron', `must have five fields: ${names}.`);
  }
  const wrong = FIELDS.find(({ form }, place) => !form.test(fields[place] ?? ''));
  if (wrong) {
    const problem = `has no valid ${wrong.field}: use numbers, names, *, lists, ranges and steps.`;
    throw invalidField('cron', problem);
  }
  return fields.join(' ');
}

/** Throws INVALID_FIELD. */
export function checkTimeZone(timeZone: string): void {
  if (!ZONE.test(timeZone) || !isKnown(timeZone)) {
    throw invalidField('timeZone', 'must be an IANA name, such as `Europe/Berlin` or `UTC`.');
  }
}

function isKnown(timeZone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone });
    return true;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

function parsed({ cron, timeZone }: Times): Cron {
  const text = normalisedCron(cron);
  checkTimeZone(timeZone);
  try {
    return new Cron(text, { timezone: timeZone, mode: '5-part' });
  } catch (error) {
    const reason = (error as Error).message.replace(/^CronPattern: /, '').replace(/\.$/, '');
    throw invalidField('cron', `is not valid: ${reason}.`);
  }
}
