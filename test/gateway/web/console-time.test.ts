/** The time of a session's page: its timeline with folded idle stretches, and its moments. */
import { suite } from 'uvu';
import { equal, is, ok } from 'uvu/assert';
import { matching } from '../../../gateway/web/console/data/log/filter.ts';
import { foldOf, idleOf, placeOf, timeAt } from '../../../gateway/web/console/data/log/fold.ts';
import { besides, laneOf, placeAt, weightOf } from '../../../gateway/web/console/data/log/lanes.ts';
import {
  type LogEntry,
  type LogRow,
  modelOf,
} from '../../../gateway/web/console/data/log/model.ts';
import { domainsOf, momentsOf } from '../../../gateway/web/console/data/log/moments.ts';
import { inRows, pageSpans } from '../../../gateway/web/console/data/log/spans.ts';
import { pageAt } from '../../../gateway/web/console/data/playlist.ts';
import { must } from '../../../proto/common/must.ts';

const time = suite('gateway/web/console-time');

const RANGE = { from: 1_000_000, to: 1_100_000 };
const at = (seconds: number) => RANGE.from + seconds * 1_000;
/** Two seconds of work, 40 s of nothing, work until 50 s, then nothing. */
const TIMES = [0.5, 2, 42, 44, 49, 50].map(at);

time('a stretch of more than 5 s without a beginning or an end is idle, but for its ends', () => {
  equal(idleOf(TIMES, RANGE), [
    { from: at(2.5), to: at(41.5) },
    { from: at(50.5), to: at(99.5) },
  ]);
  equal(idleOf([...TIMES].reverse(), RANGE), idleOf(TIMES, RANGE));
  equal(idleOf([at(5), at(10), at(15)], { from: at(0), to: at(20) }), []);
  equal(idleOf([at(5.001)], { from: at(0), to: at(6) }), [{ from: at(0.5), to: at(4.501) }]);
  equal(idleOf([], RANGE), [{ from: at(0.5), to: at(99.5) }]);
  equal(idleOf([at(-500), at(900)], RANGE), idleOf([], RANGE));
});

time('a folded stretch is a notch of one width, whatever its length', () => {
  const fold = foldOf(RANGE, idleOf(TIMES, RANGE));
  const notches = fold.filter(({ isIdle }) => isIdle).map(({ left, right }) => right - left);
  is(notches.length, 2);
  ok(notches.every((width) => Math.abs(width - 0.07) < 1e-9));
  is(fold[0]?.from, RANGE.from);
  is(fold.at(-1)?.to, RANGE.to);
  ok(Math.abs(must(fold.at(-1), 'the last piece').right - 1) < 1e-9);
  // the time that is left is to scale
  const second = placeOf(fold, at(44)) - placeOf(fold, at(43));
  ok(Math.abs(placeOf(fold, at(2)) - placeOf(fold, at(1)) - second) < 1e-9);
});

time('many notches leave half of the width', () => {
  const idle = Array.from({ length: 1_000 }, (_, index) => {
    return { from: at(index * 10), to: at(index * 10 + 9) };
  });
  const fold = foldOf({ from: at(0), to: at(10_000) }, idle);
  const folded = fold.filter(({ isIdle }) => isIdle);
  const width = folded.reduce((sum, { left, right }) => sum + right - left, 0);
  ok(Math.abs(width - 0.5) < 1e-6, `${width}`);
});

for (const [name, idle] of [
  ['folded', idleOf(TIMES, RANGE)],
  ['to scale', []],
] as const) {
  time(`a time and its place are one another's, ${name}`, () => {
    const fold = foldOf(RANGE, idle);
    let before = -1;
    for (let ms = RANGE.from; ms <= RANGE.to; ms += 137) {
      const place = placeOf(fold, ms);
      ok(place > before, 'places grow with time');
      before = place;
      ok(Math.abs(timeAt(fold, place) - ms) < 1e-3, `${ms}: ${timeAt(fold, place)}`);
    }
    equal([placeOf(fold, 0), placeOf(fold, RANGE.from)], [0, 0]);
    ok(Math.abs(placeOf(fold, RANGE.to + 5) - 1) < 1e-9);
    equal([timeAt(fold, -1), timeAt(fold, 2)], [RANGE.from, RANGE.to]);
  });
}

time('a range without a length has a fold', () => {
  const fold = foldOf({ from: 5, to: 5 }, []);
  equal([placeOf(fold, 4), placeOf(fold, 5), placeOf(fold, 6)], [0, 0, 1]);
  is(timeAt(fold, 0), 5);
});

time('a timeline counts what happened in each part of its width', () => {
  const rows = [0, 90, 100, 399, 400, 900].map((ms, index) =>
    rowOf({ at: 1_000 + ms, state: index === 2 ? 'failed' : 'done' }),
  );
  const fold = foldOf({ from: 1_000, to: 1_400 }, []);
  equal(laneOf('cdp', rows, fold, 4), {
    done: [2, 0, 0, 3],
    waiting: [0, 0, 0, 0],
    failed: [0, 1, 0, 0],
  });
  const half = foldOf({ from: 0, to: 20_000 }, [{ from: 1_000, to: 19_000 }]);
  const folded = laneOf('cdp', [rowOf({ at: 500 }), rowOf({ at: 19_500 })], half, 2);
  equal(folded.done, [1, 1]);
});

const WEIGHTS: [list: 'cdp' | 'net' | 'console', row: Partial<LogRow>, weight: string][] = [
  ['net', { state: 'done', code: 200 }, 'done'],
  ['net', { state: 'waiting' }, 'done'],
  ['net', { state: 'failed', code: 404 }, 'waiting'],
  ['net', { state: 'failed', code: 503 }, 'failed'],
  ['net', { state: 'failed' }, 'failed'],
  ['net', { state: 'failed', code: 200 }, 'failed'],
  ['net', { state: 'done', code: 200, lengthMs: 5_000 }, 'done'],
  ['cdp', { state: 'done', lengthMs: 1_000 }, 'done'],
  ['cdp', { state: 'done', lengthMs: 1_001 }, 'waiting'],
  ['cdp', { state: 'failed', lengthMs: 9 }, 'failed'],
  ['console', { state: 'waiting' }, 'waiting'],
];

for (const [list, row, weight] of WEIGHTS) {
  time(`in ${list}, ${JSON.stringify(row)} is ${weight}`, () => {
    is(weightOf(list, rowOf(row)), weight);
  });
}

time('the row at a time is the last one before it', () => {
  const rows = modelOf([0, 100, 200].map((timestamp) => ({ method: 'a', timestamp }))).cdp;
  const all = [0, 1, 2];
  equal(
    [-1, 0, 99, 100, 150, 999].map((ms) => placeAt(rows, all, ms)),
    [0, 0, 0, 1, 1, 2],
  );
  is(placeAt(rows, [0, 2], 150), 0);
  is(placeAt(rows, [], 150), 0);
});

time('a step leads to the row beside the chosen one, also when a filter hides that', () => {
  const found = [3, 5, 9];
  equal(
    [2, 3, 4, 9].map((index) => besides(found, index, 1)),
    [0, 1, 1, 3],
  );
  equal(
    [3, 4, 5, 99].map((index) => besides(found, index, -1)),
    [-1, 0, 0, 2],
  );
});

time('navigations of main frames are once each, and a page lasts until its last entry', () => {
  const { navigations, pages } = momentsOf([
    navigated(0, 10, { url: 'https://a.example/', loaderId: 'A' }),
    navigated(0, 11, { url: 'https://a.example/', loaderId: 'A' }),
    navigated(0, 12, { url: 'https://ad.example/', loaderId: 'F', parentId: 'M' }),
    navigated(1, 20, { url: 'https://b.example/', loaderId: 'A' }),
    navigated(0, 30, { url: 'https://c.example/', loaderId: 'C' }),
    { method: 'Page.lifecycleEvent', pageId: 1, timestamp: 45 },
    { method: 'Page.navigate', pageId: 2, timestamp: 50 },
  ]);
  equal(navigations, [
    { at: 10, page: 0, url: 'https://a.example/' },
    { at: 20, page: 1, url: 'https://b.example/' },
    { at: 30, page: 0, url: 'https://c.example/' },
  ]);
  equal(pages, [
    { page: 0, from: 10, to: 30, url: 'https://c.example/' },
    { page: 1, from: 20, to: 45, url: 'https://b.example/' },
  ]);
});

time('navigations without end, and of any shape, are limited', () => {
  const endless = Array.from({ length: 3_000 }, (_, index) =>
    navigated(0, index, { url: 'x'.repeat(1_000), loaderId: `${index}` }),
  );
  const { navigations, pages } = momentsOf([
    ...endless,
    navigated(3, 1, null),
    { method: 'Page.frameNavigated' },
  ]);
  is(navigations.length, 1_000);
  is(navigations[0]?.url.length, 300);
  is(pages[0]?.to, 2_999);
});

time('pages last as long as their events and their log say, also in a running session', () => {
  const iso = (ms: number) => new Date(ms).toISOString();
  const events = [
    { type: 'created', at: iso(5) },
    { type: 'page', ref: '0', at: iso(20), endedAt: iso(60), text: 'https://a.example/' },
    { type: 'page', ref: '1', at: iso(70), text: 'https://b.example/' },
  ];
  const logged = [
    { page: 0, from: 10, to: 80, url: 'https://a.example/last' },
    { page: 11, from: 90, to: 95, url: 'https://c.example/' },
  ];
  const spans = pageSpans(events, logged, { from: 0, to: 100 });
  equal(
    spans.map(({ name, text, from, to, row }) => [name, text, from, to, row]),
    [
      ['0', 'https://a.example/', 10, 80, 0],
      ['1', 'https://b.example/', 70, 100, 1],
      ['11', 'https://c.example/', 90, 95, 0],
    ],
  );
});

time('spans of one time are below each other, in three lines at most', () => {
  const spans = [0, 1, 2, 3, 20].map((from) => ({ name: '', text: '', from, to: 10 + from }));
  equal(
    inRows(spans).map(({ row }) => row),
    [0, 1, 2, 2, 0],
  );
});

time('the page of a time is the wanted one, else the current one, else the newest one', () => {
  const pages = [
    { pageId: '0', url: '', startTimeMs: 0, endTimeMs: 100 },
    { pageId: '1', url: '', startTimeMs: 50, endTimeMs: 200 },
    { pageId: '2', url: '', startTimeMs: 60, endTimeMs: 90 },
  ];
  const places: [at: number, page: number | undefined, current: string, expected: string][] = [
    [10, undefined, '0', '0'],
    [70, undefined, '0', '0'],
    [70, undefined, '9', '2'],
    [150, undefined, '0', '1'],
    [10, 1, '0', '1'],
    [150, 12, '0', '1'],
    [900, undefined, '0', '0'],
  ];
  for (const [at, page, pageId, expected] of places) {
    is(pageAt(pages, { at, page, pageId }), expected, `${at} ${page}`);
  }
});

time('domains are counted, those with most entries first', () => {
  const rows = ['Page.a', 'Network.b', 'Network.c', 'Odd', ''].map((name) => rowOf({ name }));
  equal(domainsOf(rows), [
    ['Network', 2],
    ['Page', 1],
    ['Odd', 1],
    ['', 1],
  ]);
  const many = Array.from({ length: 50 }, (_, index) => rowOf({ name: `D${index}.x` }));
  is(domainsOf(many).length, 10);
});

time('a filter takes domains, slow commands, and a range of time', () => {
  const rows = [
    rowOf({ at: 10, name: 'Network.enable' }),
    rowOf({ at: 20, name: 'Page.navigate', lengthMs: 1_500 }),
    rowOf({ at: 30, name: 'NetworkX.y', text: 'network' }),
  ];
  equal(matching(rows, 'domain:network'), [0]);
  equal(matching(rows, '-domain:Network'), [1, 2]);
  equal(matching(rows, '-domain:network -domain:page'), [2]);
  equal(matching(rows, 'is:slow'), [1]);
  equal(matching(rows, '', { from: 10, to: 20 }), [0, 1]);
  equal(matching(rows, 'network', { from: 11, to: 30 }), [2]);
  equal(matching(rows, '', { from: 31, to: 32 }), []);
});

time.run();

function rowOf(row: Partial<LogRow>): LogRow {
  const empty: LogRow = {
    at: 0,
    page: 0,
    name: '',
    text: '',
    kind: '',
    state: 'done',
    entries: [],
  };
  return Object.assign(empty, row);
}

function navigated(pageId: number, timestamp: number, frame: object | null): LogEntry {
  return { method: 'Page.frameNavigated', pageId, timestamp, request: { params: { frame } } };
}
