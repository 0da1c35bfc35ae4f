/**
 * `npm run bench [-- --full] [--only NAME]... [--peer NAME=URL]...`: measures every row of the page
 * "Benchmarks" beside the plain thing, prints them as one table, and writes them into the page. It
 * writes nothing, says why and ends with 1 when the machine was busy, a spread is too large, or
 * rows are missing. `--full` has three times the rounds; `--only` measures one part, `--peer`
 * another service too, which is never written; `--small` only shows that it works.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import { parseArgs } from 'node:util';
import { functions } from '../functions/invoke.ts';
import { pages } from '../recording.ts';
import { roundTrips } from '../relay.ts';
import { atOnce, inARow, noneReady } from '../sessions.ts';
import { type Peer, peerOf } from '../support/providers.ts';
import { type Effort, ROWS, type Row, type RowId } from '../support/rows.ts';
import { thisMachine } from './machine.ts';
import { PAGE, plainTable, withFigures } from './page.ts';
import {
  busyIn,
  disturbances,
  type Look,
  loadNow,
  lookAround,
  othersFrom,
  refusals,
} from './quiet.ts';
import { stages } from './stages.ts';
import { starts } from './start.ts';

type Part = (effort: Effort, peers: readonly Peer[]) => Promise<Row[]>;

const PARTS: Readonly<Record<string, Part>> = {
  sessions: inARow,
  cold: noneReady,
  stages,
  relay: roundTrips,
  recording: pages,
  ten: atOnce,
  functions,
  start: starts,
};
const EFFORTS = {
  small: { rounds: 1, samplesMax: 2 },
  usual: { rounds: 5, samplesMax: Number.POSITIVE_INFINITY },
  full: { rounds: 15, samplesMax: Number.POSITIVE_INFINITY },
} as const satisfies Record<string, Effort>;
/** A part that was disturbed is measured again; the last time counts, whatever it gives. */
const TIMES_MAX = 3;

process.exitCode = await main();

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      full: { type: 'boolean', default: false },
      small: { type: 'boolean', default: false },
      only: { type: 'string', multiple: true, default: Object.keys(PARTS) },
      peer: { type: 'string', multiple: true, default: [] },
    },
  });
  const effort = EFFORTS[values.small ? 'small' : values.full ? 'full' : 'usual'];
  const peers = values.peer.map(peerOf);
  const parts = values.only.map((name) => [name, partOf(name)] as const);
  const machine = thisMachine();
  for (const [name, value] of machine) console.log(`${name}: ${value}`);
  const looks = [loadNow('before the run'), await lookAround('before the run')];
  const early = looks.flatMap(busyIn);
  if (early.length > 0) console.log(`the page will not be written:\n${lines(early)}`);
  const rows: Row[] = [];
  for (const [name, part] of parts) {
    const times = values.small ? 1 : TIMES_MAX;
    const measured = await undisturbed(name, () => part(effort, peers), times);
    rows.push(...measured.rows);
    looks.push(...measured.looks);
  }
  const measured = sorted(rows.filter(({ rounds }) => rounds.length > 0));
  console.log(`\n${plainTable(measured)}\n`);
  const found = refusals(looks, measured);
  if (found.length > 0) {
    console.log(`${relative('.', PAGE)} is not written:\n${lines(found)}`);
    return 1;
  }
  const run = { machine, rows: measured, rounds: effort.rounds };
  writeFileSync(PAGE, withFigures(readFileSync(PAGE, 'utf8'), run));
  console.log(`written: ${relative('.', PAGE)}; \`npm run reference\` builds the guide with it`);
  return 0;
}

type Measured = { rows: readonly Row[]; looks: readonly Look[] };

async function undisturbed(
  name: string,
  act: () => Promise<Row[]>,
  times: number,
): Promise<Measured> {
  console.log(`measuring: ${name}`);
  const measured = await watched(name, act);
  const found = disturbances(measured.looks, measured.rows);
  if (found.length === 0 || times <= 1) return measured;
  console.log(`disturbed, and measured again:\n${lines(found)}`);
  return await undisturbed(name, act, times - 1);
}

/**
 * Looks at what others do meanwhile, and at what the machine does afterwards. A part that fails has
 * no rows, and those of the others are still printed.
 */
async function watched(name: string, act: () => Promise<Row[]>): Promise<Measured> {
  const others = othersFrom(`beside ${name}`);
  const rows = await act().catch((error: Error) => {
    console.log(`${name} failed: ${error.stack}`);
    return [];
  });
  return { rows, looks: [others(), await lookAround(`after ${name}`)] };
}

function partOf(name: string): Part {
  const part = Object.hasOwn(PARTS, name) ? PARTS[name] : undefined;
  if (part === undefined) throw new Error(`--only ${name}: ${Object.keys(PARTS).join(', ')}`);
  return part;
}

/** In the order of the page; peers below this service. */
function sorted(rows: readonly Row[]): Row[] {
  const ids = Object.keys(ROWS) as RowId[];
  return rows.toSorted((one, other) => ids.indexOf(one.id) - ids.indexOf(other.id));
}

function lines(found: readonly string[]): string {
  return found.map((one) => `  ${one}`).join('\n');
}
