/** Values as text. Pure. */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const HIDING = /[\p{Cc}\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/gu;
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/** `3.2 s`, `2 min 05 s`, `3 h 07 min`, `2 d 4 h`; whole seconds below a minute when `isWhole`. */
export function lengthText(ms: number, isWhole = false): string {
  const at = Math.max(0, ms);
  if (at < SECOND && !isWhole) return `${Math.round(at)} ms`;
  if (at < MINUTE)
    return isWhole ? `${Math.floor(at / SECOND)} s` : `${(at / SECOND).toFixed(1)} s`;
  if (at < HOUR) return `${Math.floor(at / MINUTE)} min ${two((at % MINUTE) / SECOND)} s`;
  if (at < DAY) return `${Math.floor(at / HOUR)} h ${two((at % HOUR) / MINUTE)} min`;
  return `${Math.floor(at / DAY)} d ${Math.floor((at % DAY) / HOUR)} h`;
}

/** `84.210`: seconds since the start of a session, as permalinks have it. */
export function offsetText(ms: number): string {
  return (ms / SECOND).toFixed(3);
}

/** `1.4 MiB`. */
export function bytesText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(value < 10 ? 1 : 0)} ${UNITS[unit]}`;
}

/** `14:03:22`, with the date in front unless it is that of `nowMs`. */
export function timeText(ms: number, isUtc: boolean, nowMs: number): string {
  const [date, time] = partsOf(ms, isUtc);
  return date === partsOf(nowMs, isUtc)[0] ? time : `${date} ${time}`;
}

/** With milliseconds and zone, for a title. */
export function exactText(ms: number, isUtc: boolean): string {
  if (isUtc) return new Date(ms).toISOString().replace('T', ' ').replace('Z', ' UTC');
  const [date, time] = partsOf(ms, false);
  const offset = -new Date(ms).getTimezoneOffset();
  const size = Math.abs(offset);
  const zone = `${offset < 0 ? '-' : '+'}${two(size / 60)}:${two(size % 60)}`;
  return `${date} ${time}.${String(ms % SECOND).padStart(3, '0')} ${zone}`;
}

/** `user_metadata` as `key: value` texts, at most `max` of them. */
export function labelsOf(metadata: Record<string, unknown> | undefined, max: number): string[] {
  const entries = Object.entries(metadata ?? {}).slice(0, max);
  return entries.map(([key, value]) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    return `${key}: ${text}`;
  });
}

/** The http or https address that the text is; undefined for any other text. */
export function webAddress(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const { protocol, href } = new URL(text);
  return protocol === 'http:' || protocol === 'https:' ? href : undefined;
}

/** Characters that reorder or hide other text as escapes of JSON; line breaks and tabs stay. */
export function escaped(text: string): string {
  return text.replaceAll(HIDING, (one) => {
    const code = one.charCodeAt(0).toString(16).padStart(4, '0');
    return one === '\n' || one === '\t' ? one : `\\u${code}`;
  });
}

/** Without characters that reorder or hide other text; at most `max` characters. */
export function plain(text: string, max = 500): string {
  const cut = text.length > max ? `${text.slice(0, max)}…` : text;
  return cut.replaceAll(HIDING, ' ');
}

function partsOf(ms: number, isUtc: boolean): [date: string, time: string] {
  const at = isUtc ? ms : ms - new Date(ms).getTimezoneOffset() * MINUTE;
  const [date = '', time = ''] = new Date(at).toISOString().split('T');
  return [date, time.slice(0, 8)];
}

function two(value: number): string {
  return String(Math.floor(value)).padStart(2, '0');
}
