/** Variables as text, and what is thrown for one that cannot be used. settings/ reads TABERN_*. */
import { readFileSync } from 'node:fs';

export type Env = Readonly<Record<string, string | undefined>>;

/** A variable that cannot be used. The command table prints its message alone and exits 2. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** The data directory lacks something or is damaged: its operator mends it, no restart (78). */
export class DataError extends ConfigError {}

/**
 * How the message begins when a data directory is held: the command table exits 75 for it, for
 * waiting may cure it.
 */
export const ANOTHER_RUNS = 'another tabern runs on this data directory';

/**
 * The value of `name`, or of the file that `name_FILE` names, trimmed; undefined when neither is
 * set or it is empty.
 */
export function text(env: Env, name: string): string | undefined {
  const direct = env[name]?.trim();
  if (direct) return direct;
  const path = env[`${name}_FILE`]?.trim();
  if (!path) return undefined;
  try {
    return readFileSync(path, 'utf8').trim() || undefined;
  } catch (cause) {
    throw new ConfigError(`${name}_FILE: cannot read ${path}`, { cause });
  }
}

/** Where to listen. */
export type Place = { host: string; port: number };
