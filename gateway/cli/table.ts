/** The command table: every command there is, in the order in which help lists them. */
import { about } from './about.ts';
import type { Command, Section } from './command.ts';
import { flagsOf } from './flags.ts';
import { FUNCTIONS } from './functions.ts';
import { OBJECTS } from './objects.ts';
import { OPERATE } from './operate.ts';
import { ROLES } from './roles/roles.ts';

const TRY: Command = {
  usage: 'try [url]',
  says: 'open a page in a session; prints its title and a live view to watch',
  example: 'tabern try https://example.org/',
  kind: 'project',
  run: async ([url], given) => (await import('../../runner/cli/try.ts')).run(url, given),
};

export const SECTIONS: readonly Section[] = [
  { heading: 'Run the service:', commands: [...ROLES, TRY] },
  { heading: 'Write functions:', commands: FUNCTIONS },
  { heading: 'Look after a project:', commands: OBJECTS },
  { heading: 'Operate the service:', commands: OPERATE },
  { heading: 'About:', commands: about(everyCommand, flagsOf) },
];

export function everyCommand(): readonly Command[] {
  return SECTIONS.flatMap(({ commands }) => commands);
}

/** What a first word with others behind it is about, and what else it may be called. */
export const GROUPS: Readonly<Record<string, { says: string; alias?: string }>> = {
  sessions: { says: 'list, show, create, release, logs, debug' },
  contexts: { says: 'list, show, create, delete, upload, download', alias: 'context' },
  webhooks: { says: 'list, create, show, delete, rotate, enable, test, deliveries, redeliver' },
  keys: { says: 'create, list and revoke API keys' },
  projects: { says: 'create, list, limits, usage' },
};
