/**
 * The differences of two JSON values, by path. Values are a tenant's: the number of compared
 * values, of differences and of shown characters is limited, and no call recurses. Pure.
 */

/** `before` and `after` are short texts; undefined where the value is absent. */
export type Difference = { path: string; before: string | undefined; after: string | undefined };
export type Differences = { rows: Difference[]; isCut: boolean };

/** Ours: some 50 ms. */
const COMPARED_MAX = 200_000;
const ROWS_MAX = 200;
const TEXT_MAX_CHARS = 200;
const PATH_MAX_CHARS = 300;
const NAME = /^[A-Za-z_$][\w$]*$/;

type Pair = { path: string; before: unknown; after: unknown };
type Fields = Record<string, unknown>;

/** In the order of the members; `undefined` is an absent value. */
export function differencesOf(before: unknown, after: unknown): Differences {
  const rows: Difference[] = [];
  const open: Pair[] = [{ path: '', before, after }];
  let [compared, isCut] = [0, false];
  while (open.length > 0) {
    const pair = open.pop();
    if (pair === undefined || Object.is(pair.before, pair.after)) continue;
    compared += 1;
    if (compared > COMPARED_MAX || rows.length >= ROWS_MAX) return { rows, isCut: true };
    const isBoth = isNested(pair.before) && isNested(pair.after);
    if (isBoth && Array.isArray(pair.before) === Array.isArray(pair.after)) {
      const room = COMPARED_MAX - compared - open.length;
      const members = membersOf(pair, room);
      isCut ||= members.length > room;
      for (const member of members.slice(0, room).reverse()) open.push(member); // the first is next
    } else {
      rows.push({
        path: pair.path === '' ? '(all)' : pair.path,
        before: shortText(pair.before),
        after: shortText(pair.after),
      });
    }
  }
  return { rows, isCut };
}

/** The members that may differ; at most one more than `max`. */
function membersOf({ path, before, after }: Pair, max: number): Pair[] {
  const [one, other] = [before as Fields, after as Fields];
  const isList = Array.isArray(before);
  const members: Pair[] = [];
  for (const key of new Set([...Object.keys(one), ...Object.keys(other)])) {
    const [a, b] = [own(one, key), own(other, key)];
    if (Object.is(a, b)) continue;
    members.push({ path: pathOf(path, key, isList), before: a, after: b });
    if (members.length > max) break;
  }
  return members;
}

function pathOf(path: string, key: string, isList: boolean): string {
  if (path.length > PATH_MAX_CHARS) return path;
  const name = key.slice(0, PATH_MAX_CHARS);
  if (isList) return `${path}[${name}]`;
  if (!NAME.test(name)) return `${path}[${JSON.stringify(name)}]`;
  return path === '' ? name : `${path}.${name}`;
}

/** A value in one line. */
export function shortText(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  if (Array.isArray(value)) return `[…] ${countText(value.length, 'item')}`;
  if (isNested(value)) return `{…} ${countText(Object.keys(value).length, 'member')}`;
  const cut = typeof value === 'string' ? value.slice(0, TEXT_MAX_CHARS + 1) : value;
  const text = JSON.stringify(cut);
  return text.length > TEXT_MAX_CHARS ? `${text.slice(0, TEXT_MAX_CHARS)}…` : text;
}

function countText(count: number, word: string): string {
  return count === 1 ? `1 ${word}` : `${count} ${word}s`;
}

function isNested(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function own(fields: Fields, key: string): unknown {
  return Object.hasOwn(fields, key) ? fields[key] : undefined;
}
