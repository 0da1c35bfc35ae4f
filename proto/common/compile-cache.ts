/** Node's cache of compiled modules, for threads and processes that inherit no environment. */
import module from 'node:module';
import { dirname } from 'node:path';

/** The variable that enables the cache of this process in a child; empty without a cache. */
export function moduleCacheEnv(): Record<string, string> {
  // of this version of Node and this user, below the cache directory; Deno has none
  const dir = module.getCompileCacheDir?.();
  return dir === undefined ? {} : { NODE_COMPILE_CACHE: dirname(dir) };
}
