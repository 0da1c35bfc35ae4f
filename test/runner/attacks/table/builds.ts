/** What a project may try while it is built: none of it runs, and none of the machine is read. */
import type { BuildAttack } from '../lab/build-attack.ts';
import { costs } from './build-costs.ts';
import { installs } from './build-installs.ts';
import { sources } from './build-sources.ts';

export const builds: readonly BuildAttack[] = [...sources, ...installs, ...costs];
