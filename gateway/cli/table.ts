/** The command table: all commands, in the order of the help. */
import { VERSION } from '../process/version.ts';
import { about } from './about.ts';
import type { Command, Section } from './command.ts';
import { FUNCTIONS } from './functions.ts';
import { OBJECTS } from './objects.ts';
import { OPERATE } from './operate.ts';
import { ROLES } from './roles/roles.ts';

const TRY: Command = {
  usage: 'try [url]',
  description: 'open a page in a session; prints its title and a live view link',
  example: 'tabern try https://example.org/',
  kind: 'project',
  run: async ([url], given) => (await import('../../runner/cli/try.ts')).run(url, given),
};

const MCP: Command = {
  usage: 'mcp',
  description: 'tools for agents: an MCP server on stdio',
  example: 'tabern mcp',
  kind: 'project',
  run: async (_, given) => (await import('../../runner/cli/mcp.ts')).run(given, VERSION),
};

export const SECTIONS: readonly Section[] = [
  { heading: 'Run the service:', commands: [...ROLES, TRY, MCP] },
  { heading: 'Write functions:', commands: FUNCTIONS },
  { heading: 'Manage a project:', commands: OBJECTS },
  { heading: 'Operate the service:', commands: OPERATE },
  { heading: 'About:', commands: about(everyCommand) },
];

export function everyCommand(): readonly Command[] {
  return SECTIONS.flatMap(({ commands }) => commands);
}

/** Descriptions and aliases of command groups, by their first word. */
export const GROUPS: Readonly<Record<string, { description: string; alias?: string }>> = {
  functions: { description: 'list, show, list versions, delete' },
  invocations: { description: 'list, show' },
  builds: { description: 'list, show, logs' },
  secrets: { description: 'list, set, delete, attach, detach' },
  sessions: { description: 'list, show, create, release, logs, debug' },
  contexts: { description: 'list, show, create, delete, upload, download', alias: 'context' },
  webhooks: {
    description: 'list, create, show, delete, rotate, enable, test, deliveries, redeliver',
  },
  keys: { description: 'create, list and revoke API keys' },
  projects: { description: 'create, list, limits, usage' },
  tokens: { description: "change a role's token" },
  certs: { description: 'create, renew and list certificates of roles' },
};
