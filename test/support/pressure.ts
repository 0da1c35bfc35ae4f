/**
 * Loads the machine while a command runs: `node test/support/pressure.ts [--load N] -- COMMAND`.
 * One thread in four writes and syncs a file, one holds and touches memory, the others compute, at
 * the command's own priority. Ends with the command, and with its exit code; prints the load.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fdatasyncSync, openSync, writeSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { tempDirectory } from './temp.ts';

const MIB = 1 << 20;
const FILE_MAX_BYTES = 64 * MIB;
const MEMORY_BYTES = 512 * MIB;
const PAGE_BYTES = 4096;

type Kind = 'cpu' | 'disk' | 'memory';

if (isMainThread) process.exitCode = await main();
else press(workerData as { kind: Kind; dir: string });

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { load: { type: 'string', default: '8' } },
  });
  const [program, ...rest] = positionals;
  const load = Number(values.load);
  if (program === undefined || !Number.isInteger(load) || load < 1) {
    console.error('usage: node test/support/pressure.ts [--load N] -- COMMAND');
    return 2;
  }
  await using dir = tempDirectory();
  const threads = Array.from({ length: load }, (_, index) => {
    const kind = index % 4 === 3 ? 'disk' : index === 2 ? 'memory' : 'cpu';
    return new Worker(new URL(import.meta.url), { workerData: { kind, dir: dir.path } });
  });
  const [code] = await once(spawn(program, rest, { stdio: 'inherit' }), 'exit');
  console.error(`load of ${load} beside it; averages of 1, 5, 15 min: ${loadavg().join(' ')}`);
  await Promise.all(threads.map((thread) => thread.terminate()));
  return code ?? 1;
}

/** Never returns: terminate() ends the thread between two steps. */
function press({ kind, dir }: { kind: Kind; dir: string }): never {
  const block = Buffer.alloc(MIB, 'x');
  const memory = kind === 'memory' ? Buffer.alloc(MEMORY_BYTES) : block;
  const file = kind === 'disk' ? openSync(join(dir, `${process.hrtime.bigint()}`), 'w') : undefined;
  for (let round = 0; ; round += 1) {
    for (let at = 0; at < memory.length; at += PAGE_BYTES) memory[at] = round & 0xff;
    if (file === undefined) continue;
    writeSync(file, block, 0, MIB, (round * MIB) % FILE_MAX_BYTES);
    fdatasyncSync(file);
  }
}
