/** Environment variables as text, and errors for invalid ones. settings/ reads TABERN_*. */
import { readFileSync } from 'node:fs';

export type Env = Readonly<Record<string, string | undefined>>;

/** An invalid variable. The command prints only its message and exits 2. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/**
 * The data directory is incomplete or damaged: the operator must fix it, a restart does not help
 * (exit code 78).
 */
export class DataError extends ConfigError {}

/** What core needs does not answer at present: a later start may succeed without a change. */
export class AwayError extends Error {
  override readonly name = 'AwayError';
}

/**
 * First words of the message when another process uses the data directory: the command exits 75,
 * because waiting may help.
 */
export const ANOTHER_RUNS = 'another tabern runs on this data directory';

/**
 * The value of `name`, or of the file named by `name_FILE`, trimmed; undefined when neither is set
 * or the value is empty.
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

/** An address to listen on. */
export type Place = { host: string; port: number };
