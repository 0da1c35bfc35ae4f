/**
 * Settings of a command: a flag wins over a variable, a variable over the settings file. Writes the
 * winners into the environment, checks them, and shows them for `tabern config`.
 */
import type { Env } from '../../../proto/common/env.ts';
import { readSetting, readSettings } from '../../../proto/common/settings/read.ts';
import { type Origin, setVariable, sourceOf } from '../../../proto/common/settings/sources.ts';
import { SETTINGS } from '../../../proto/common/settings/table.ts';
import { memberOf, type Role, type Row } from '../../../proto/common/settings/types.ts';
import type { Given } from '../command.ts';
import { settingsFile } from './file.ts';

/** Throws ConfigError for a file that cannot be used. */
export function applySettings(given: Given, flags: readonly Row[], env: NodeJS.ProcessEnv): void {
  for (const { name } of flags) {
    const value = given[memberOf(name)];
    if (typeof value !== 'string') continue;
    setVariable(env, `TABERN_${name}`, { value, from: 'flag', label: wordOf(name) });
  }
  const path = given['config'] ?? readSetting(env, 'CONFIG');
  if (typeof path !== 'string' || path === '') return;
  for (const { name, value, label } of settingsFile(path)) {
    const variable = `TABERN_${name}`;
    if (env[variable] || env[`${variable}_FILE`]) continue;
    setVariable(env, variable, { value, from: 'settings file', label });
  }
}

/** Throws ConfigError for a value that one of the roles cannot use; nothing has started yet. */
export function checkSettings(env: Env, roles: readonly Role[]): void {
  for (const role of roles) readSettings(env, role);
}

/** `WEBHOOK_CA` -> `--webhook-ca`. */
export function wordOf(name: string): string {
  return `--${name.toLowerCase().replaceAll('_', '-')}`;
}

export type Shown = { name: string; value: string | null; from: Origin; says: string };

/** Every setting with its value, secrets as `(set)`, and its source. */
export function shownSettings(env: Env): Shown[] {
  return SETTINGS.map(({ name, description: says, isSecret, default: fallback = null }) => {
    const variable = `TABERN_${name}`;
    const from = sourceOf(env, variable)?.from ?? 'default';
    const shown = { name: variable, from, says };
    if (from === 'default') return { ...shown, value: fallback };
    const path = env[`${variable}_FILE`]?.trim();
    if (from === 'file of the variable') return { ...shown, value: `(in ${path})` };
    return { ...shown, value: isSecret ? '(set)' : (env[variable]?.trim() ?? null) };
  });
}
