/** Every attack, by its target. */
import type { Kind } from '../lab/attack.ts';
import { browser } from './browser.ts';
import { builds } from './builds.ts';
import { inputCosts } from './costs.ts';
import { files } from './files.ts';
import { floods } from './floods.ts';
import { headOfLine } from './head-of-line.ts';
import { language } from './language.ts';
import { localTools } from './local-tools.ts';
import { memory } from './memory.ts';
import { network } from './network.ts';
import { otherProjects } from './other-projects.ts';
import { processes } from './processes.ts';
import { stalled } from './stalled.ts';

export const KINDS: readonly Kind[] = [
  { title: 'Files', attacks: files },
  { title: 'Processes', attacks: processes },
  { title: 'Network', attacks: network },
  { title: 'Time and memory', attacks: memory },
  { title: 'Floods and forgery', attacks: floods },
  { title: 'The language', attacks: language },
  { title: 'Through its browser', attacks: browser },
  { title: 'Through its build', attacks: builds },
  { title: 'Head of line', attacks: headOfLine },
  { title: 'Cost of accepted input', attacks: inputCosts },
  { title: 'Local tools from a browser', attacks: localTools },
  { title: "Another project's objects", attacks: otherProjects },
  { title: 'A stalled runner', attacks: stalled },
];
