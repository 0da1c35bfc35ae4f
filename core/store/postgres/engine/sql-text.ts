/**
 * SQL texts with `@name` or `?` for parameters, translated once to PostgreSQL's `$n`. A value is
 * always a parameter and never part of the text. Texts in quotes are left as they are.
 */
import { must } from '../../../../proto/common/must.ts';

export type SqlText = {
  text: string;
  /**
   * The values of `$1`, `$2` and so on: of the members of one object, or the arguments in order.
   */
  values(args: readonly unknown[]): unknown[];
};

/** A text in quotes, a comment, `::type`, or a parameter. */
const TOKEN = /'(?:[^']|'')*'|"[^"]*"|--[^\n]*|\?|@(\w+)/g;

export function sqlText(sql: string): SqlText {
  const names: string[] = [];
  let count = 0;
  const text = sql.replace(TOKEN, (token, name: string | undefined) => {
    if (token === '?') {
      count += 1;
      return `$${count}`;
    }
    if (name === undefined) return token;
    if (!names.includes(name)) names.push(name);
    return `$${names.indexOf(name) + 1}`;
  });
  if (names.length > 0 && count > 0) throw new Error(`a statement mixes ? and @name: ${sql}`);
  if (names.length === 0) return { text, values: (args) => inOrder(args, count) };
  return {
    text,
    values: ([wanted]) =>
      names.map((name) => storable((must(wanted, 'parameters') as Named)[name])),
  };
}

type Named = Readonly<Record<string, unknown>>;

function inOrder(args: readonly unknown[], count: number): unknown[] {
  return Array.from({ length: count }, (_, index) => storable(args[index]));
}

/**
 * `undefined` is NULL, as SQLite binds it. PostgreSQL cannot store U+0000: it becomes U+FFFD, also
 * in the texts of a list.
 */
export function storable(value: unknown): unknown {
  if (value === undefined) return null;
  if (Array.isArray(value)) return value.map(storable);
  return typeof value === 'string' && value.includes('\0')
    ? value.replaceAll('\0', '\ufffd')
    : value;
}
