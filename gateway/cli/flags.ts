/** The options of a command: its own, and those that all of its kind have. */
import type { Command, Flag } from './command.ts';
import { flagOf, type Role, SETTINGS, type Setting } from './settings/settings.ts';

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
export function settingsOf({ usage, kind }: Command): readonly Setting[] {
  if (kind !== 'role' && kind !== 'settings') return [];
  return SETTINGS.filter(({ roles, isSecret, name }) => {
    if (isSecret || name === 'CONFIG') return false;
    if (kind === 'settings') return true;
    if (usage !== 'serve') return roles.includes(usage as Role);
    return name !== 'CORE' && roles.some((role) => role !== 'tools'); // it is its own core
  });
}

function asFlag(setting: Setting): Flag {
  const { name, says, default: fallback } = setting;
  const otherwise = fallback === undefined ? '' : `, or ${fallback}`;
  return { flags: flagOf(setting), says: `${says}; TABERN_${name}${otherwise}` };
}
