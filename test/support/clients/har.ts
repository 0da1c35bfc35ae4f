/**
 * The structure of HAR 1.2 (http://www.softwareishard.com/blog/har-12-spec/), strictly: each
 * required member with its type, and no member that the format does not name, except `_` ones.
 */

type Check = (value: unknown, path: string, faults: string[]) => void;

/** What is wrong with a parsed file: one line each. */
export function harFaults(file: unknown): string[] {
  const faults: string[] = [];
  FILE(file, 'har', faults);
  if (faults.length > 0) return faults;
  const { log } = file as { log: { pages?: { id: string }[]; entries: Entry[] } };
  const pages = new Set((log.pages ?? []).map(({ id }) => id));
  log.entries.forEach(({ pageref, time, timings }, index) => {
    if (pageref !== undefined && !pages.has(pageref)) {
      faults.push(`entries[${index}].pageref names no page`);
    }
    const { ssl: _ssl, comment: _comment, ...parts } = timings;
    const sum = Object.values(parts).reduce((total, one) => total + Math.max(0, one), 0);
    if (Math.abs(sum - time) > 0.01) faults.push(`entries[${index}].time is not its timings`);
  });
  return faults;
}

type Entry = { pageref?: string; time: number; timings: Record<string, number> };

const text = typed('string');
const number: Check = (value, path, faults) => {
  if (typeof value !== 'number' || !Number.isFinite(value)) faults.push(`${path} is no number`);
};
const size: Check = (value, path, faults) => {
  if (!Number.isInteger(value) || (value as number) < -1) faults.push(`${path} is no size`);
};
/** -1: does not apply. */
const span: Check = (value, path, faults) => {
  if (typeof value !== 'number' || !(value >= 0 || value === -1)) faults.push(`${path} is no span`);
};
const length: Check = (value, path, faults) => {
  if (typeof value !== 'number' || !(value >= 0)) faults.push(`${path} is no length`);
};
const date: Check = (value, path, faults) => {
  const isIso = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(?:Z|[+-]\d\d:\d\d)$/.test(String(value));
  if (!isIso || Number.isNaN(Date.parse(String(value)))) faults.push(`${path} is no ISO 8601 time`);
};

const NAMED = object({ name: text, value: text });
const COOKIE = object(
  { name: text, value: text },
  { path: text, domain: text, expires: text, httpOnly: typed('boolean'), secure: typed('boolean') },
);
const POST_DATA = object({ mimeType: text, params: list(object({ name: text })), text });
const REQUEST = object(
  {
    method: text,
    url: text,
    httpVersion: text,
    cookies: list(COOKIE),
    headers: list(NAMED),
    queryString: list(NAMED),
    headersSize: size,
    bodySize: size,
  },
  { postData: POST_DATA },
);
const CONTENT = object({ size, mimeType: text }, { compression: number, text, encoding: text });
const RESPONSE = object({
  status: size,
  statusText: text,
  httpVersion: text,
  cookies: list(COOKIE),
  headers: list(NAMED),
  content: CONTENT,
  redirectURL: text,
  headersSize: size,
  bodySize: size,
});
const TIMINGS = object(
  { send: length, wait: length, receive: length },
  { blocked: span, dns: span, connect: span, ssl: span },
);
const ENTRY = object(
  {
    startedDateTime: date,
    time: length,
    request: REQUEST,
    response: RESPONSE,
    cache: object({}),
    timings: TIMINGS,
  },
  { pageref: text, serverIPAddress: text, connection: text },
);
const PAGE = object({
  startedDateTime: date,
  id: text,
  title: text,
  pageTimings: object({}, { onContentLoad: span, onLoad: span }),
});
const CREATOR = object({ name: text, version: text });
const LOG = object(
  { version: text, creator: CREATOR, entries: list(ENTRY) },
  { browser: CREATOR, pages: list(PAGE) },
);
const FILE = object({ log: LOG });

function typed(type: 'string' | 'boolean'): Check {
  return (value, path, faults) => {
    if (typeof value !== type) faults.push(`${path} is no ${type}`);
  };
}

function list(check: Check): Check {
  return (value, path, faults) => {
    if (!Array.isArray(value)) faults.push(`${path} is no list`);
    else for (const [index, one] of value.entries()) check(one, `${path}[${index}]`, faults);
  };
}

function object(required: Record<string, Check>, optional: Record<string, Check> = {}): Check {
  const known: Record<string, Check> = { comment: text, ...optional, ...required };
  return (value, path, faults) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      faults.push(`${path} is no object`);
      return;
    }
    for (const name of Object.keys(required)) {
      if (!Object.hasOwn(value, name)) faults.push(`${path}.${name} is missing`);
    }
    for (const [name, member] of Object.entries(value)) {
      const check = Object.hasOwn(known, name) ? known[name] : undefined;
      if (check !== undefined) check(member, `${path}.${name}`, faults);
      else if (!name.startsWith('_')) faults.push(`${path}.${name} is not of HAR 1.2`);
    }
  };
}
