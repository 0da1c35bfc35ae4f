/** Every attack, by what it is after. */
import type { Kind } from '../attack.ts';
import { browser } from './browser.ts';
import { files } from './files.ts';
import { floods } from './floods.ts';
import { language } from './language.ts';
import { memory } from './memory.ts';
import { network } from './network.ts';
import { processes } from './processes.ts';

export const KINDS: readonly Kind[] = [
  { title: 'Files', attacks: files },
  { title: 'Processes', attacks: processes },
  { title: 'Network', attacks: network },
  { title: 'Time and memory', attacks: memory },
  { title: 'Floods and forgery', attacks: floods },
  { title: 'The language', attacks: language },
  { title: 'Through its browser', attacks: browser },
];
