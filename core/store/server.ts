/**
 * The engine for several cores, for those outside this folder. Its modules, but for the texts of
 * errors, are loaded on first use: a core with a file of SQLite needs none of them.
 */

import type { inspectPostgres as inspect } from './postgres/inspect.ts';
import type { openPostgres as open } from './postgres/open.ts';

export { databaseProblem } from './postgres/engine/errors.ts';

export const loadPostgres = () => import('./postgres/open.ts');

export const openPostgres: typeof open = async (options) =>
  (await loadPostgres()).openPostgres(options);

export const inspectPostgres: typeof inspect = async (server) =>
  (await import('./postgres/inspect.ts')).inspectPostgres(server);
