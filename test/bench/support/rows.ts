/**
 * The rows of the page of benchmarks. Each is measured in rounds: in each round the service and the
 * plain thing are measured beside each other, so that what slows the machine slows both.
 */
import { quantile } from './figures.ts';

type Kind = {
  title: string;
  /** What it is compared with, in the same run. */
  plain: string;
  /** `ms`: less is better. `/s`: more is better. */
  unit: 'ms' | '/s';
  means: string;
};

const SHELL = 'the headless shell over its own WebSocket port, with its sandbox';
const DIRECT = 'the same Chrome, driven by Playwright over its own pipe';
const BY_HAND = 'a Node process that launches Chrome, does the same and ends';
const LAUNCH_CONNECT = "Playwright's launch, a page, and close, stage by stage";
const TEN = '10 x `puppeteer.launch` at once';

const stage = (name: string, means: string): Kind => ({
  title: `stage: ${name}`,
  plain: LAUNCH_CONNECT,
  unit: 'ms',
  means,
});

export const ROWS = {
  launch: {
    title: 'create to first answer',
    plain: "Playwright's launch of the same Chrome",
    unit: 'ms',
    means:
      'From `POST /v1/sessions` to the answer of the first CDP command, 20 without a pause, by a ' +
      'service that had such rows before and rests: its stock of browsers follows them.',
  },
  connect: {
    title: 'create to first answer, beside a connection',
    plain: 'a connection to a Chrome that runs already',
    unit: 'ms',
    means: 'The same times, beside a Chrome that is shared by everybody and never ends.',
  },
  cold: {
    title: 'create to first answer, none ready',
    plain: "Playwright's launch of the same Chrome, and a page",
    unit: 'ms',
    means: 'One at a time, by a service that starts no browser in advance.',
  },
  create: stage('create', '`POST /v1/sessions`. Plain: the launch.'),
  connected: stage(
    'connect',
    "Playwright's `connectOverCDP`. Plain: a new page, as a session has.",
  ),
  goto: stage('goto', '`page.goto` of a small page on this machine, until its load event.'),
  release: stage('release', 'Until the release of the session is answered. Plain: `close`.'),
  evaluate: {
    title: 'evaluate, with log',
    plain: SHELL,
    unit: 'ms',
    means: 'One `Runtime.evaluate` after the other, through the gateway and the relay.',
  },
  evaluateUnlogged: {
    title: 'evaluate, without log',
    plain: SHELL,
    unit: 'ms',
    means: 'The same with `logSession: false`.',
  },
  pipelined: {
    title: 'evaluate, 50 at once',
    plain: SHELL,
    unit: '/s',
    means: 'How many in a second, with 50 in flight and the log. Above 1.00x is faster.',
  },
  page: {
    title: 'page of 100, with log and recording',
    plain: DIRECT,
    unit: 'ms',
    means: '`page.goto` of a page with 100 pictures, with the default settings.',
  },
  pageLogged: {
    title: 'page of 100, with log',
    plain: DIRECT,
    unit: 'ms',
    means: 'The same with `recordSession: false`.',
  },
  pageBare: {
    title: 'page of 100, without both',
    plain: DIRECT,
    unit: 'ms',
    means: 'The same with `logSession: false` too.',
  },
  tenReady: {
    title: '10 at once: ready',
    plain: TEN,
    unit: 'ms',
    means:
      'Until the last of ten sessions, with log and recording, is connected, by a service that ' +
      'had ten at once before.',
  },
  tenWork: {
    title: '10 at once: work',
    plain: TEN,
    unit: 'ms',
    means: 'From then until the last has loaded 20 pictures, evaluated 100 times and closed.',
  },
  tenBoth: {
    title: '10 at once: ready and work',
    plain: TEN,
    unit: 'ms',
    means: 'Both together: from the first create until the last has closed.',
  },
  tenReadyLogged: {
    title: '10 at once: ready, without recording',
    plain: TEN,
    unit: 'ms',
    means: 'The same with `recordSession: false`.',
  },
  tenWorkLogged: {
    title: '10 at once: work, without recording',
    plain: TEN,
    unit: 'ms',
    means: 'The same with `recordSession: false`.',
  },
  tenBothLogged: {
    title: '10 at once: ready and work, without recording',
    plain: TEN,
    unit: 'ms',
    means: 'The same with `recordSession: false`.',
  },
  trivial: {
    title: 'trivial function',
    plain: BY_HAND,
    unit: 'ms',
    means: 'From the request until COMPLETED, of a handler that returns its params.',
  },
  driver: {
    title: 'function with playwright-core',
    plain: BY_HAND,
    unit: 'ms',
    means:
      'The same, of a handler that connects with Playwright, opens a page and reads its title.',
  },
  ready: {
    title: 'start to ready',
    plain: 'a Node process with an HTTP server',
    unit: 'ms',
    means: 'From the start of `tabern serve` on stored data until `/healthz` answers 200.',
  },
  firstSession: {
    title: 'start to first session',
    plain: 'a Node process that launches Chrome',
    unit: 'ms',
    means: 'From the same start until the first session has answered its first CDP command.',
  },
} as const satisfies Record<string, Kind>;

export type RowId = keyof typeof ROWS;
/** Samples, in the unit of the row. */
export type Round = { took: readonly number[]; plain: readonly number[] };
/** `peer`: of which other service, measured in the place of this one. */
export type Row = { id: RowId; peer?: string; rounds: Round[] };

/** A row to be filled. */
export function rowOf(id: RowId, peer?: string): Row {
  return { id, ...(peer !== undefined && { peer }), rounds: [] };
}

/** How much is measured. */
export type Effort = {
  rounds: number;
  /** No round has more samples of anything, and no warm-up more runs. */
  samplesMax: number;
};

export type Figures = {
  p50: number;
  p95: number;
  plain: number;
  /** The middle one of the rounds. */
  ratio: number;
  /**
   * How far the rounds' ratios are apart: their quartiles' distance, as a part of the ratio, or of
   * a quarter when the ratio is smaller.
   */
  spread: number;
};

/** Below it, how often faster something is tells little: half of 0.04 is no other result. */
const SMALL_RATIO = 0.25;

export function figuresOf({ rounds }: Row): Figures {
  const ratios = rounds.map(({ took, plain }) => middle(took) / middle(plain));
  const ratio = middle(ratios);
  const took = rounds.flatMap((round) => round.took);
  return {
    p50: middle(took),
    p95: quantile(took, 0.95),
    plain: middle(rounds.flatMap((round) => round.plain)),
    ratio,
    spread: (quantile(ratios, 0.75) - quantile(ratios, 0.25)) / Math.max(ratio, SMALL_RATIO),
  };
}

/** As a benchmark alone prints it. */
export function showRow(row: Row): void {
  const { title, plain, unit } = ROWS[row.id];
  const { p50, p95, plain: theirs, ratio, spread } = figuresOf(row);
  const own = `p50 ${p50.toFixed(1)} ${unit}, p95 ${p95.toFixed(1)} ${unit}`;
  const beside = `${ratio.toFixed(2)}x of ${theirs.toFixed(1)} ${unit}, ${plain}`;
  const of = row.peer === undefined ? '' : `, ${row.peer}`;
  console.log(`${title}${of}: ${own} = ${beside}; spread ${(100 * spread).toFixed(0)} %`);
}

export function middle(values: readonly number[]): number {
  return quantile(values, 0.5);
}
