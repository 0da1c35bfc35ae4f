/**
 * Where compiled modules are kept from one start to the next: without them each process and each
 * thread strips types and compiles anew, which takes half of a start's time, and 25 MB that are
 * never given back. In the program's own directory, which is as trusted as the code; where that may
 * not be written, in the data directory of an earlier start. Node keeps users apart, and knows by a
 * hash that a source has changed. NODE_COMPILE_CACHE, Node's own variable, names another place, and
 * is how the choice reaches the runner and the threads.
 */
import { existsSync } from 'node:fs';
import module from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const OWN = fileURLToPath(new URL('../.cache/modules', import.meta.url));

/** From here on in this process, and in those that inherit its environment. */
export function keepModules() {
  if (process.env.NODE_COMPILE_CACHE) return;
  const data = process.env.TABERN_DATA;
  const places = data && existsSync(data) ? [OWN, join(data, 'cache', 'modules')] : [OWN];
  for (const place of places) {
    // a Node that is too old for it only starts another
    const { status } = module.enableCompileCache?.(place) ?? {};
    if (status !== module.constants?.compileCacheStatus.ENABLED) continue;
    process.env.NODE_COMPILE_CACHE = place;
    return;
  }
}
