/** Modules of a service's threads, on SQLite. Compiled by compile-modules.js, and bundled. */
export const THREADS = [
  'core/store/sqlite/thread.ts',
  'core/validation/validator-thread.ts',
  'gateway/webhooks/sender-thread.ts',
  'runner/leases/lease-thread.ts',
];
/** Loaded by piscina, with `require`. */
export const POOL_THREAD = 'core/contexts/key-thread.ts';
