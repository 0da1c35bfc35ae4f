/**
 * The single executable and Node on the sources, in turns: time until ready, memory at rest, size.
 * `node test/bench/binary.ts [starts]`
 */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { freePort } from '../support/port.ts';
import { builtBinary } from '../support/service/binary.ts';
import { familyOf } from '../support/service/processes.ts';
import { endService, startService } from '../support/service/serve.ts';
import { tempDirectory } from '../support/temp.ts';
import { quantile, show } from './support/figures.ts';

const STARTS = Number(process.argv[2] ?? 5);
const MIB = 1024 * 1024;
/** By then the runner has started its spares, and all processes are idle. */
const REST_MS = 10_000;
const END_LIMIT_MS = 60_000;
/** The service's own processes; Chrome's are the same for both. */
const OURS = /(?:gateway|runner)\/.*\.[jt]s/;

type Command = readonly [string, ...string[]] | undefined;
type Start = { readyMs: number; pssMib: number };

await using dir = await builtBinary();
const program = join(dir.path, 'tabern');
const size = statSync(program).size / MIB;
const packed = gzipSync(readFileSync(program), { level: 6 }).byteLength / MIB;
console.log(`size: ${size.toFixed(0)} MiB, ${packed.toFixed(0)} MiB gzipped`);

await using cache = tempDirectory();
const first = await start([program], 0);
console.log(`first start, which unpacks: ready in ${first.readyMs.toFixed(0)} ms`);
await start(undefined, 0); // compiles the remaining code
const binary: Start[] = [];
const sources: Start[] = [];
for (let round = 0; round < STARTS; round += 1) {
  binary.push(await start([program], round === 0 ? REST_MS : 0));
  sources.push(await start(undefined, round === 0 ? REST_MS : 0));
}
const readyMs = (starts: readonly Start[]) => starts.map((one) => one.readyMs);
show('sources, ready', readyMs(sources));
show('executable, ready', readyMs(binary), readyMs(sources));
const rest = [binary, sources].map((starts) =>
  quantile(
    starts.map((one) => one.pssMib),
    1,
  ),
);
const [ours = 0, theirs = 1] = rest;
const figures = `executable ${ours.toFixed(0)} MiB, sources ${theirs.toFixed(0)} MiB`;
console.log(`at rest, without Chrome: ${figures} = ${(ours / theirs).toFixed(2)}x`);

/** One start with new data; memory is measured after `restMs`, not at all when 0. */
async function start(command: Command, restMs: number): Promise<Start> {
  await using data = tempDirectory();
  const env = { TABERN_DATA: join(data.path, 'data'), TABERN_CACHE_DIR: cache.path };
  const port = await freePort();
  const service = await startService({ ...env, TABERN_PORT: String(port) }, command);
  try {
    if (restMs > 0) await pause(restMs);
    return { readyMs: service.readyMs, pssMib: restMs > 0 ? pssOf(service.pid) : 0 };
  } finally {
    await endService(service, 'SIGTERM', END_LIMIT_MS);
  }
}

/** In MiB, of the service's own processes: shared memory is divided among them. */
function pssOf(pid: number): number {
  const own = familyOf(pid).filter((one) => OURS.test(commandOf(one.pid)));
  const kib = own.map((one) => {
    const rollup = readFileSync(`/proc/${one.pid}/smaps_rollup`, 'utf8');
    return Number(/^Pss:\s+(\d+) kB/m.exec(rollup)?.[1] ?? 0);
  });
  return kib.reduce((sum, one) => sum + one, 0) / 1024;
}

function commandOf(pid: number): string {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
}
