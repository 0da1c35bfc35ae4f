/**
 * Every setting there is: a variable, a flag of the roles that read it, a member of the settings
 * file. The first that is given wins: flag, variable, its _FILE, the settings file, the default.
 */
import { OF_RUNNERS } from './runner.ts';
import { OF_SERVICE } from './service.ts';

export type Role = 'core' | 'gateway' | 'runner' | 'tools';

export type Setting = {
  /** Without `TABERN_`. */
  name: string;
  /** As it would be written; undefined: none, or found. */
  default?: string;
  says: string;
  roles: readonly Role[];
  /** Never a flag, as everybody on the machine can read those, and never printed. */
  isSecret?: boolean;
};

export const SETTINGS: readonly Setting[] = [...OF_SERVICE, ...OF_RUNNERS];

/** `WEBHOOK_CA` -> `webhookCa`, as in the settings file. */
export function memberOf(name: string): string {
  return name.toLowerCase().replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** `WEBHOOK_CA` -> `--webhook-ca <value>`. */
export function flagOf({ name }: Setting): string {
  return `--${name.toLowerCase().replaceAll('_', '-')} <value>`;
}
