/** Attacks during a build: nothing runs, and no file of the machine is read. */
import type { BuildAttack } from '../lab/build-attack.ts';
import { costs } from './build-costs.ts';
import { installs } from './build-installs.ts';
import { sources } from './build-sources.ts';

export const builds: readonly BuildAttack[] = [...sources, ...installs, ...costs];
