/** Node's cache of compiled modules, for threads and processes that inherit no environment. */
import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';

/** The variable that opens the cache of this process there, too; none when it has no cache. */
export function moduleCacheEnv(): Record<string, string> {
  const dir = getCompileCacheDir(); // of this version of Node and this user, below the cache's
  return dir === undefined ? {} : { NODE_COMPILE_CACHE: dirname(dir) };
}
