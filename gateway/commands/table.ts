/** The command table: every command there is, in the order in which help lists them. */
import type { Section } from './command.ts';
import { FUNCTIONS } from './functions.ts';
import { OBJECTS } from './objects.ts';
import { OPERATE } from './operate.ts';
import { ABOUT, ROLES } from './roles.ts';

export const SECTIONS: readonly Section[] = [
  { heading: 'Run the service:', commands: ROLES },
  { heading: 'Write functions:', commands: FUNCTIONS },
  { heading: 'Look after a project:', commands: OBJECTS },
  { heading: 'Operate the service:', commands: OPERATE },
  { heading: 'About:', commands: ABOUT },
];

/** What a first word with others behind it is about. */
export const GROUPS: Readonly<Record<string, string>> = {
  context: 'move what a context holds',
  keys: 'make, list and revoke API keys',
  projects: 'make, list, limit and count projects',
};
