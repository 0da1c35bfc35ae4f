/**
 * The last step of an installation: compiles what a start needs (modules.js), so that the first
 * start is like all later ones. Prints the version, as the command table is compiled by its use.
 */
import './docs/copy.js';
import { keepModules } from './modules.js';

const ROLES = ['gateway/serve.ts', 'gateway/alone.ts', 'core/main.ts', 'runner/main.ts'];
const THREADS = [
  'core/store/sqlite/entry.ts',
  'core/checks/thread.ts',
  'core/keys/thread.ts',
  'gateway/webhooks/thread.ts',
  'runner/lease-thread.ts',
];

// a Node that is too old for them is replaced by tabern.js
if (process.features.typescript) await compile();

async function compile() {
  const load = (path) => import(new URL(`../${path}`, import.meta.url));
  keepModules();
  for (const path of ROLES) await load(path);
  // compiled before it refuses to run outside a thread
  for (const path of THREADS) await load(path).catch(() => undefined);
  process.argv.splice(2, Number.POSITIVE_INFINITY, 'version');
  await load('gateway/tabern.js');
}
