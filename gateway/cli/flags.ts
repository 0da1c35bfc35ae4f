/** The options of a command: its own, and those that all of its kind have. */
import { SETTINGS } from '../../proto/common/settings/table.ts';
import { described, type Role, type Row } from '../../proto/common/settings/types.ts';
import type { Command, Flag } from './command.ts';
import { wordOf } from './settings/apply.ts';

const CONFIG: Flag = {
  flags: '--config <file>',
  says: 'a settings file: JSON; TABERN_CONFIG when absent',
};

/** Of a command that calls the service. */
const OF_PROJECT: readonly Flag[] = [
  {
    flags: '--base-url <url>',
    says: 'where tabern is; TABERN_BASE_URL, or http://127.0.0.1:4747',
  },
  { flags: '--api-key <key>', says: 'your API key; TABERN_API_KEY when absent' },
  { flags: '--json', says: 'print JSON alone' },
  CONFIG,
];

/** Of a command that works on a data directory. */
const OF_OPERATOR: readonly Flag[] = [
  { flags: '--data <directory>', says: 'the data directory; TABERN_DATA, or ./tabern_data' },
  { flags: '--core <address>', says: "core's address; TABERN_CORE, or the socket in --data" },
  { flags: '--json', says: 'print JSON alone' },
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

/** The settings that are flags of the command. */
export function settingsOf(command: Command): readonly Row[] {
  const own = rolesOf(command);
  return SETTINGS.filter(({ roles, isSecret, name }) => {
    if (isSecret || name === 'CONFIG') return false;
    if (command.kind === 'settings') return true;
    if (command.usage === 'serve' && name === 'CORE') return false; // it is its own core
    return roles.some((role) => own.includes(role));
  });
}

/** The parts of the service that the command runs. */
export function rolesOf({ usage, kind }: Command): readonly Role[] {
  if (kind !== 'role') return [];
  return usage === 'serve' ? ['core', 'gateway', 'runner'] : [usage as Role];
}

function asFlag(row: Row): Flag {
  const { name, default: fallback } = row;
  const otherwise = fallback === undefined ? '' : `, or ${fallback}`;
  return {
    flags: `${wordOf(name)} <value>`,
    says: `${described(row)}; TABERN_${name}${otherwise}`,
  };
}
