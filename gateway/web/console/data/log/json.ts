/** Members of JSON that came from a visited page: of any shape, and of any length. Pure. */

export type Fields = Record<string, unknown>;

const TEXT_MAX_CHARS = 300;

export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}

export function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

/** A short text; empty for an absent value. */
export function textOf(value: unknown, max = TEXT_MAX_CHARS): string {
  return value === undefined ? '' : String(value).slice(0, max);
}
