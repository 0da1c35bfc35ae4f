/** Reads and validates the settings of table.ts from TABERN_* variables; no other file does. */
import { type Env, text } from '../env.ts';
import { must } from '../must.ts';
import { settingError } from './sources.ts';
import { SETTINGS, type Setting } from './table.ts';
import { type Member, memberOf, parsed, type Role, type Row, type ValueOf } from './types.ts';

type Name = Setting['name'];
type Value<R extends Row> = R extends { default: string } ? ValueOf<R> : ValueOf<R> | undefined;

/** The settings that a role reads, by member name: LEASE_MS is `leaseMs`. */
export type SettingsOf<R extends Role> = {
  [S in Setting as R extends S['roles'][number] ? Member<S['name']> : never]: Value<S>;
};

const ROWS = new Map(SETTINGS.map((row) => [row.name, row]));

/** Throws a ConfigError that names the source of a value that cannot be used. */
export function readSettings<R extends Role>(env: Env, role: R): SettingsOf<R> {
  const rows = SETTINGS.filter(({ roles }) => roles.includes(role));
  const members = rows.map((row) => [memberOf(row.name), valueIn(env, row)]);
  return Object.fromEntries(members) as SettingsOf<R>; // the same rows as the type has
}

/** One setting; its default, or undefined, when it is not set. Throws as readSettings. */
export function readSetting<N extends Name>(
  env: Env,
  name: N,
): Value<Extract<Setting, { name: N }>> {
  const row = must(ROWS.get(name), 'a row for each name');
  return valueIn(env, row) as Value<Extract<Setting, { name: N }>>; // its row's
}

function valueIn(env: Env, row: Row): unknown {
  const variable = `TABERN_${row.name}`;
  const given = text(env, variable) ?? row.default;
  if (given === undefined) return undefined;
  try {
    return parsed(row, given);
  } catch (error) {
    const { message: problem, cause } = error as Error;
    throw settingError(env, variable, { problem, cause });
  }
}

/** Core's address for grpc-js: the setting, else the socket in the data directory. */
export function coreAddress({ data, core }: { data: string; core: string | undefined }): string {
  return core ?? `unix:${data}/core.sock`;
}
