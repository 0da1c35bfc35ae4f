/**
 * The last step of an installation: fills the compile cache (gateway/modules.js), so that the first
 * start is as fast as later ones. Prints the version, because using the command table compiles it.
 */
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import '../web/docs/copy.js';
import { keepModules } from '../modules.js';

const ROLES = [
  'gateway/cli/roles/serve.ts',
  'gateway/cli/roles/service.ts',
  'gateway/cli/roles/gateway.ts',
  'core/main.ts',
  'core/store/postgres/open.ts',
  'runner/main.ts',
];
/** Loaded on first use. */
const PACKAGES = ['@hpke/core', '@ghostery/adblocker'];

const require = createRequire(import.meta.url);

// a Node that is too old is replaced by gateway/tabern.js
if (process.features.typescript) await compile();

async function compile() {
  const { POOL_THREAD, THREADS } = await import('./threads.ts');
  const load = (path) => import(new URL(`../../${path}`, import.meta.url));
  keepModules();
  for (const path of ROLES) await load(path);
  for (const name of PACKAGES) await import(name);
  // compiled before it refuses to run outside a thread
  for (const path of THREADS) await load(path).catch(() => undefined);
  const piscina = fileURLToPath(new URL('worker.js', import.meta.resolve('piscina')));
  for (const path of [piscina, `../../${POOL_THREAD}`]) {
    try {
      require(path); // piscina loads its modules so, and finds them compiled although this throws
    } catch {
      // it refuses to run outside a thread
    }
  }
  process.argv.splice(2, Number.POSITIVE_INFINITY, 'version');
  await load('gateway/tabern.js');
}
