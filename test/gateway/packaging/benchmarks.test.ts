/**
 * The guide's page "Benchmarks": its generated parts are those of the code, and `npm run bench`
 * writes figures of a quiet run only.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { buildGuide } from '../../../gateway/packaging/guide/build.ts';
import { rowsIn, sizesIn } from '../../bench/page/faults.ts';
import { otherProcesses, type Process, ticksBetween } from '../../bench/page/others.ts';
import { PAGE, plainTable, withFigures, withReference } from '../../bench/page/page.ts';
import {
  BOUNDS,
  type Look,
  lookAround,
  othersFrom,
  refusals,
  waitedMicros,
} from '../../bench/page/quiet.ts';
import { peerOf, triedBy } from '../../bench/support/providers.ts';
import { figuresOf, ROWS, type Row, type RowId, rowOf } from '../../bench/support/rows.ts';
import { listen } from '../../runner/browser/lab.ts';
import { useOf } from '../../support/run/processors.ts';

const test = suite('gateway/packaging/benchmarks');

const page = readFileSync(PAGE, 'utf8');
const quiet: Look[] = [
  { when: 'before', load: 0.1 },
  { when: 'before', pressure: 0.01, busy: 0.02 },
  { when: 'beside', others: 0.01 },
];
/** Five rounds of all rows: ratios of 0.4 to 0.6. */
const rows = (Object.keys(ROWS) as RowId[]).map((id) => measured(id, [40, 45, 50, 55, 60]));

test('what the page says of rows, bounds and faults is what the code says', () => {
  assert.ok(page === withReference(page), 'run `npm run reference`, and read what it changed');
});

test('a run is written into the page, again and again, without the rows of peers', () => {
  const machine = [['Machine', '2 cores of a test']] as const;
  const peer = { ...measured('launch', [1_234]), peer: 'somebody' };
  const once = withFigures(page, { machine, rows: [...rows, peer], rounds: 5 });
  assert.match(once, '| Machine | 2 cores of a test |');
  assert.match(once, '| create to first answer | 50.0 ms | 60.0 ms | 100 ms | 0.50x | 20 % |');
  assert.not.match(once, /somebody|1234/);
  assert.is(withFigures(once, { machine, rows, rounds: 5 }), once);
  assert.is(withReference(once), once);
  const { html = '' } =
    buildGuide(new Map([['benchmarks', once]])).pages.find((one) => one.name === 'benchmarks') ??
    {};
  assert.match(html, '<td>0.50x</td>');
  assert.throws(() => withFigures('# Benchmarks', { machine, rows, rounds: 5 }), /has no <!--/);
});

test('the table of a terminal has the rows of peers', () => {
  const table = plainTable([...rows, { ...measured('launch', [200]), peer: 'somebody' }]);
  assert.match(table, /create to first answer \(somebody\) +200 ms +200 ms +100 ms +2\.00x/);
});

test('the ratio is the middle one of the rounds: a slow round counts once', () => {
  const slow = { took: [800, 900, 900], plain: [1_000, 1_000, 1_200] };
  const row = { ...rowOf('launch'), rounds: [...measured('launch', [50, 50]).rounds, slow] };
  const { p50, plain, ratio, spread } = figuresOf(row);
  assert.equal([p50, plain, ratio], [800, 1_000, 0.5]);
  assert.ok(Math.abs(spread - 0.8) < 1e-9, String(spread));
});

test('a quiet run of all rows is written', () => {
  assert.equal(refusals(quiet, rows), []);
});

test('each bound refuses, and names itself', () => {
  const busy: [Look, RegExp][] = [
    [{ when: 'before', load: 0.31 }, /^before: a load by core of 31 % is above 30 %$/],
    [{ when: 'after x', pressure: 0.06, busy: 0 }, /^after x: a pressure of 6 %/],
    [{ when: 'after x', pressure: undefined, busy: 0.12 }, /^after x: a use of the processors/],
    [{ when: 'beside x', others: 0.2 }, /^beside x: other processes: a use of 20 %/],
  ];
  for (const [look, says] of busy) {
    const [reason = '', ...more] = refusals([...quiet, look], rows);
    assert.match(reason, says);
    assert.equal(more, []);
  }
  const [first, ...others] = rows;
  const bad: [Row[], RegExp][] = [
    [
      [measured('launch', [20, 30, 50, 70, 90]), ...others],
      /^create to first answer: a spread of 80/,
    ],
    [[measured('launch', [50, 50, 50, 50]), ...others], /^fewer than 5 rounds$/],
    [[measured('launch', Array(5).fill(Number.NaN)), ...others], /spread of NaN/],
    [others, /^not measured: create to first answer$/],
    [[...rows, { ...measured('launch', [900]), peer: 'somebody' }], /^peers ran beside it$/],
  ];
  assert.ok(first);
  for (const [wrong, says] of bad) {
    const [reason = '', ...more] = refusals(quiet, wrong);
    assert.match(reason, says);
    assert.equal(more, []);
  }
});

test('pressure and use are read from /proc', async () => {
  const text = 'some avg10=1.50 avg60=0.2 avg300=0.1 total=4711\nfull avg10=0.00 total=3\n';
  assert.is(waitedMicros(text), 4_711);
  assert.is(waitedMicros(''), undefined);
  assert.equal(useOf('cpu  10 1 5 100 4 0 2 8 7 7\ncpu0 1 1 1 1\n'), { busy: 26, all: 130 });
  const others = othersFrom('beside a pause');
  const look = await lookAround('a pause');
  assert.ok('busy' in look && look.busy >= 0 && look.busy <= 1, JSON.stringify(look));
  const beside = others();
  assert.ok('others' in beside && beside.others >= 0, JSON.stringify(beside));
});

test('of processes that end in between, only what they used in between counts', () => {
  const of = (pid: number, parent: number, own: number, children = 0): Process => {
    return { pid, parent, own, children, start: `${pid}` };
  };
  // 20 and its child 30 end: of their 160 ticks, and 5 of a new one, 150 were used before
  const before = [of(10, 1, 7), of(20, 10, 100), of(30, 20, 50), of(40, 1, 9)];
  assert.is(ticksBetween(before, [of(10, 1, 8, 165), of(40, 1, 9)]), 16);
  assert.is(ticksBetween(before, [of(10, 1, 8), of(40, 1, 9)]), 1, 'another one adopted them');
  assert.is(ticksBetween(before, [...before, of(50, 1, 3, 1)]), 4);
  assert.is(ticksBetween(before, [{ ...of(40, 1, 2), start: 'later' }]), 2, 'a pid is used again');
  const shell = { ...of(40, 1, 9), children: undefined };
  assert.is(ticksBetween([shell], [of(40, 1, 10, 900)]), 1, 'it was our ancestor before');
  assert.ok(otherProcesses().every(({ pid }) => pid !== process.pid));
});

test('a peer is a name and an address, and its failure is not the run’s', async () => {
  const peer = peerOf('browserless=ws://127.0.0.1:3000/?token=a=b');
  assert.is(peer.name, 'browserless');
  const { connectUrl } = await peer.create();
  assert.is(connectUrl, 'ws://127.0.0.1:3000/?token=a=b');
  assert.is(peerOf('steel=http://127.0.0.1:3000').name, 'steel');
  for (const text of ['steel', '=ws://x', 'steel=', 'steel=ftp://x', 'a b=ws://x']) {
    assert.throws(() => peerOf(text), /name=ws:\/\/\.\.\. or name=http/, text);
  }
  const fails = async () => {
    throw new Error('refused');
  };
  assert.is(await triedBy(peer.name, fails), undefined);
  await triedBy(undefined, fails).then(
    () => assert.unreachable(),
    ({ message }) => assert.is(message, 'refused'),
  );
});

test('a peer with sessions by REST is asked to create and to release', async () => {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    response.end('{"id":"one","websocketUrl":"ws://127.0.0.1:1/"}');
  });
  const peer = peerOf(`steel=http://127.0.0.1:${await listen(server)}`);
  const { connectUrl, release } = await peer.create();
  await release();
  server.close().closeAllConnections();
  assert.is(connectUrl, 'ws://127.0.0.1:1/');
  assert.equal(asked, ['POST /v1/sessions', 'POST /v1/sessions/one/release']);
});

test('counts of tests are read from their sources, and must be there', () => {
  assert.is(sizesIn('faults/kill.test.ts', 'ROUNDS'), '4; 20 in a whole run');
  assert.is(sizesIn('gateway/fuzz/slow.test.ts', 'HEADERS'), '2,000');
  assert.throws(() => sizesIn('faults/kill.test.ts', 'NOTHING'), /has no NOTHING/);
  assert.throws(() => rowsIn('faults/kill.test.ts', 'NOTHING'), /has no NOTHING/);
  assert.is(BOUNDS.roundsMin, 5);
});

test.run();

/** A row of one sample a round, beside 100. */
function measured(id: RowId, took: readonly number[]): Row {
  return { ...rowOf(id), rounds: took.map((one) => ({ took: [one], plain: [100] })) };
}
