/**
 * Loaded by `node --import`: the wall clock is off by as many milliseconds as the file
 * TABERN_TEST_CLOCK contains, read at the start and at each SIGUSR2. No other clock changes.
 */
import { readFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';
import { must } from '../../../proto/common/must.ts';

if (isMainThread) {
  const file = must(process.env['TABERN_TEST_CLOCK'], 'the file with the milliseconds');
  const Real = Date;
  let offMs = 0;
  const read = (): void => {
    offMs = Number(readFileSync(file, 'utf8'));
  };
  read();
  process.on('SIGUSR2', read);
  const now = (): number => Real.now() + offMs;
  globalThis.Date = new Proxy(Real, {
    construct: (target, given) => Reflect.construct(target, given.length > 0 ? given : [now()]),
    get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
  });
}
