/** Brings flags and the settings file into the variables that every role reads. */
import { readFileSync } from 'node:fs';
import { ConfigError } from '../../../proto/common/env.ts';
import type { Given } from '../command.ts';
import { memberOf, SETTINGS, type Setting } from './settings.ts';

type Variables = NodeJS.ProcessEnv;
export type Origin = 'flag' | 'variable' | 'file of the variable' | 'settings file' | 'default';

/** What was set by flags and the file: the rest stood in the environment. */
const origins = new Map<string, Origin>();

/** Throws ConfigError for a file that cannot be used. */
export function applySettings(given: Given, flags: readonly Setting[], env: Variables): void {
  for (const { name } of flags) {
    const value = given[memberOf(name)];
    if (typeof value === 'string') set(env, name, { value, origin: 'flag' });
  }
  const path = given['config'] ?? env['TABERN_CONFIG'];
  if (typeof path !== 'string' || path === '') return;
  for (const [name, value] of Object.entries(fileOf(path))) {
    const isSet = env[`TABERN_${name}`] || env[`TABERN_${name}_FILE`];
    if (!isSet) set(env, name, { value, origin: 'settings file' });
  }
}

function set(
  env: Variables,
  name: string,
  { value, origin }: { value: string; origin: Origin },
): void {
  env[`TABERN_${name}`] = value;
  delete env[`TABERN_${name}_FILE`];
  origins.set(name, origin);
}

/** The file's members by the names of settings. */
function fileOf(path: string): Record<string, string> {
  let members: unknown;
  try {
    members = JSON.parse(readFileSync(path, 'utf8'));
  } catch (cause) {
    const why = cause instanceof SyntaxError ? 'is not JSON' : 'cannot be read';
    throw new ConfigError(`the settings file ${path} ${why}`, { cause });
  }
  if (typeof members !== 'object' || members === null || Array.isArray(members)) {
    throw new ConfigError(`the settings file ${path} must be an object, such as {"port": 8080}`);
  }
  const names = new Map(SETTINGS.map(({ name }) => [memberOf(name), name]));
  return Object.fromEntries(
    Object.entries(members).map(([member, value]) => {
      const name = names.get(member);
      if (name === undefined || name === 'CONFIG') {
        throw new ConfigError(`${path} has ${JSON.stringify(member)}, which is no setting`);
      }
      return [name, textOf(value, `${member} in ${path}`)];
    }),
  );
}

function textOf(value: unknown, what: string): string {
  if (typeof value === 'string' || typeof value === 'number') return String(value);
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value.join(',');
  throw new ConfigError(`${what} must be a text, a number or a list of texts`);
}

export type Shown = { name: string; value: string | null; from: Origin; says: string };

/** Every setting with its value, secrets as `(set)`, and where it came from. */
export function shownSettings(env: Variables): Shown[] {
  return SETTINGS.map(({ name, says, isSecret, ...setting }) => {
    const direct = env[`TABERN_${name}`]?.trim();
    const path = env[`TABERN_${name}_FILE`]?.trim();
    const from = origins.get(name) ?? (direct ? 'variable' : path && 'file of the variable');
    const value = direct || (path ? `(in ${path})` : (setting.default ?? null));
    return {
      name: `TABERN_${name}`,
      value: isSecret && direct ? '(set)' : value,
      from: from || 'default',
      says,
    };
  });
}
