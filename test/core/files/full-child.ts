/**
 * The process that test/core/store/crash.test.ts starts on a small disk: creates key pairs until
 * the disk is full, then frees some of it and continues. Argument: the directory. Prints results on
 * stdout.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openStore } from '../../../core/store/thread.ts';
import { faultOf } from '../../support/fault.ts';

const [dir = ''] = process.argv.slice(2);
const ballast = join(dir, 'ballast');
writeFileSync(ballast, Buffer.alloc(1 << 20));
const store = await openStore({ dir, durability: 'full', onFatal: () => process.exit(70) });

let made = 0;
async function make(): Promise<void> {
  const pair = { id: String(made).padStart(9, '0'), publicKey: 'x'.repeat(20_000), at: 0 };
  await store.addKeyPair({ ...pair, privateKey: Buffer.alloc(1) });
  made += 1;
}
async function fill(): Promise<never> {
  for (;;) await make();
}

const { reason } = await faultOf(fill());
const whileFull = (await store.countKeyPairs()) - made;
rmSync(ballast);
await make();
const after = (await store.countKeyPairs()) - made;
await store.close();
process.stdout.write(JSON.stringify({ reason, whileFull, after }));
