/** Reads TABERN_* variables. Used by the config.ts of each role and nowhere else. */
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

/** A whole number within [min, max]; the default when not set. */
export function integer(
  env: Env,
  name: string,
  range: { default: number; min: number; max: number },
): number {
  const value = text(env, name);
  if (value === undefined) return range.default;
  const number = Number(value);
  if (!Number.isInteger(number) || number < range.min || number > range.max) {
    throw new ConfigError(`${name} must be a whole number from ${range.min} to ${range.max}`);
  }
  return number;
}

/** One of the words; the default when not set. */
export function choice<const W extends string>(
  env: Env,
  name: string,
  words: readonly W[],
  fallback: W,
): W {
  const value = text(env, name);
  if (value === undefined) return fallback;
  const word = words.find((one) => one === value);
  if (word === undefined) throw new ConfigError(`${name} must be one of ${words.join(', ')}`);
  return word;
}

/** A comma-separated list, trimmed, without empty members. */
export function list(env: Env, name: string): string[] {
  return (text(env, name) ?? '')
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');
}

/** Where to listen. */
export type Place = { host: string; port: number };

/** `host:port`, or a port of this machine's loopback; undefined when not set. Port 0 is any. */
export function place(env: Env, name: string): Place | undefined {
  const value = text(env, name);
  if (value === undefined) return undefined;
  const [, host = '127.0.0.1', port] = /^(?:(.+):)?(\d{1,5})$/.exec(value) ?? [];
  if (port === undefined || Number(port) > 65_535) {
    throw new ConfigError(`${name} must be host:port, such as 127.0.0.1:9464`);
  }
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) };
}
