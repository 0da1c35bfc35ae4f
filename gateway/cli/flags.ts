/** The options of a command: its own, and those shared by all commands of its kind. */
import { SETTINGS } from '../../proto/common/settings/table.ts';
import { described, type Role, type Row } from '../../proto/common/settings/types.ts';
import { type Command, type Flag, flag } from './command.ts';
import { wordOf } from './settings/apply.ts';

const JSON_ALONE = flag('--json', 'print JSON alone');
const CONFIG = flag('--config <file>', 'path of a settings file (JSON); default TABERN_CONFIG');

/** Options of commands that call the service. */
const OF_PROJECT: readonly Flag[] = [
  flag('--base-url <url>', 'URL of the service; default TABERN_BASE_URL, or http://127.0.0.1:4747'),
  flag('--api-key <key>', 'API key; default TABERN_API_KEY'),
  JSON_ALONE,
  CONFIG,
];

/** Options of commands that use a data directory. */
const OF_OPERATOR: readonly Flag[] = [
  flag('--data <directory>', 'data directory; default TABERN_DATA, or ./tabern_data'),
  flag('--core <address>', 'address of core; default TABERN_CORE, or the socket in --data'),
  JSON_ALONE,
  CONFIG,
];

export function flagsOf(command: Command): readonly Flag[] {
  const { flags = [], kind } = command;
  switch (kind) {
    case 'project':
      return [...flags, ...OF_PROJECT];
    case 'operator':
      return [...flags, ...OF_OPERATOR];
    case 'role':
    case 'settings':
      return [...flags, ...settingsOf(command).map(asFlag), CONFIG];
    case 'local':
      return flags;
  }
}

/** Settings that are flags of the command. */
export function settingsOf(command: Command): readonly Row[] {
  const own = rolesOf(command);
  return SETTINGS.filter(({ roles, isSecret, name }) => {
    if (isSecret || name === 'CONFIG') return false;
    if (command.kind === 'settings') return true;
    if (command.usage === 'serve' && name === 'CORE') return false; // it runs core itself
    return roles.some((role) => own.includes(role));
  });
}

/** The roles that the command runs. */
export function rolesOf({ usage, kind }: Command): readonly Role[] {
  if (kind !== 'role') return [];
  return usage === 'serve' ? ['core', 'gateway', 'runner'] : [usage as Role];
}

function asFlag(row: Row): Flag {
  const { name, default: fallback } = row;
  const otherwise = fallback === undefined ? '' : `, or ${fallback}`;
  return flag(`${wordOf(name)} <value>`, `${described(row)}; TABERN_${name}${otherwise}`);
}
