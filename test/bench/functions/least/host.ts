/** The function host of least.ts: runs each handler in a thread of a piscina pool. */
import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';

const pool = new Piscina({
  filename: fileURLToPath(new URL('./handler.ts', import.meta.url)),
  minThreads: 1,
  maxThreads: 4,
  atomics: 'disabled',
});
process.on('message', async (run: { id: string; paramsJson: string }) => {
  process.send?.({ id: run.id, results: await pool.run(run) });
});
process.on('disconnect', () => process.exit(0));
process.send?.({});
