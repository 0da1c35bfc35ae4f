/** The parts of the console without a page: addresses, lists, texts, recordings. */
import { suite } from 'uvu';
import { equal, is } from 'uvu/assert';
import {
  bytesText,
  escaped,
  exactText,
  labelsOf,
  lengthText,
  plain,
  timeText,
  webAddress,
} from '../../../gateway/web/console/data/format.ts';
import { appended, newerThan, refreshed } from '../../../gateway/web/console/data/paged.ts';
import { codecOf, playlistOf, segmentAt } from '../../../gateway/web/console/data/playlist.ts';
import { pathOf, routeOf } from '../../../gateway/web/console/data/route.ts';
import { isAtEnd, scrolledTo, windowOf } from '../../../gateway/web/console/data/window.ts';

const parts = suite('gateway/web/console');

const ROUTES: [path: string, page: string, projectId: string, id: string][] = [
  ['/console', 'overview', '', ''],
  ['/console/', 'overview', '', ''],
  ['/console/login', 'overview', '', ''],
  ['/console/p/a', 'overview', 'a', ''],
  ['/console/p/a/sessions', 'sessions', 'a', ''],
  ['/console/p/a/sessions/b', 'session', 'a', 'b'],
  ['/console/p/a/runs/b', 'run', 'a', 'b'],
  ['/console/p/a/functions/b', 'function', 'a', 'b'],
  ['/console/p/a/publish', 'publish', 'a', ''],
  ['/console/p/a/publish/b', 'unknown', 'a', 'b'],
  ['/console/p/a/builds', 'builds', 'a', ''],
  ['/console/p/a/builds/b', 'build', 'a', 'b'],
  ['/console/p/a/sessions/b/c', 'unknown', 'a', 'b'],
  ['/console/p/a/constructor', 'unknown', 'a', ''],
  ['/console/p/a/toString/b', 'unknown', 'a', 'b'],
  ['/console/x/a', 'unknown', 'a', ''],
  ['/console/p', 'unknown', '', ''],
];

for (const [path, page, projectId, id] of ROUTES) {
  parts(`${path} is the page ${page}`, () => {
    const { query, ...route } = routeOf(path, '?tab=net&e=4');
    equal(route, { page, projectId, id });
    is(query.get('tab'), 'net');
  });
}

parts('a path leads back to its route', () => {
  is(pathOf('a'), '/console/p/a');
  is(pathOf('a', 'sessions', 'b'), '/console/p/a/sessions/b');
});

parts('only the rows in view and some around them are drawn', () => {
  const scroll = { top: 2_400, height: 240, rowHeight: 24, count: 200_000 };
  equal(windowOf(scroll, 5), { from: 95, to: 115 });
  equal(windowOf({ ...scroll, top: -30 }, 5), { from: 0, to: 15 });
  equal(windowOf({ ...scroll, count: 3 }, 5), { from: 3, to: 3 });
  equal(windowOf({ ...scroll, count: 0 }, 5), { from: 0, to: 0 });
  equal(windowOf({ ...scroll, top: 199_995 * 24 }, 5), { from: 199_990, to: 200_000 });
});

parts('a row is scrolled into view by the shortest way', () => {
  const scroll = { top: 240, height: 240, rowHeight: 24, count: 100 };
  is(scrolledTo(12, scroll), 240);
  is(scrolledTo(3, scroll), 72);
  is(scrolledTo(30, scroll), 504);
  is(isAtEnd({ ...scroll, top: 2_160 }), true);
  is(isAtEnd({ ...scroll, top: 2_100 }), false);
});

const row = (n: number) => ({ id: `id-${n}`, createdAt: new Date(n * 1_000).toISOString() });

parts('a page that is read again drops rows that no longer match, and keeps older ones', () => {
  const old = [9, 8, 7, 6, 5, 4].map(row);
  const page = { rows: [10, 9, 7].map(row), nextCursor: 'more' };
  equal(refreshed(old, page), [10, 9, 7, 6, 5, 4].map(row));
  equal(refreshed(old, { ...page, nextCursor: undefined }), page.rows);
  equal(refreshed(old, { rows: [], nextCursor: 'more' }), []);
});

parts('rows newer than all others wait, and no row appears twice', () => {
  const old = [5, 4].map(row);
  equal(newerThan(old, [7, 6, 5].map(row)), [7, 6].map(row));
  equal(newerThan([], [7].map(row)), [7].map(row));
  const same = { ...row(5), id: 'id-6' };
  equal(newerThan(old, [same, row(5)]), [same]);
  equal(appended(old, [4, 3].map(row)), [5, 4, 3].map(row));
});

parts('lengths, sizes and times', () => {
  const lengths = [0, 999, 3_240, 59_940, 125_000, 11_220_000, 187_200_000].map((ms) => {
    return lengthText(ms);
  });
  equal(lengths, ['0 ms', '999 ms', '3.2 s', '59.9 s', '2 min 05 s', '3 h 07 min', '2 d 4 h']);
  is(lengthText(900, true), '0 s');
  is(lengthText(-5), '0 ms');
  equal([0, 1_023, 1_500, 20 << 20].map(bytesText), ['0 B', '1023 B', '1.5 KiB', '20 MiB']);
  const at = Date.UTC(2026, 10, 5, 14, 3, 22, 7);
  is(timeText(at, true, at), '14:03:22');
  is(timeText(at, true, at + 86_400_000), '2026-11-05 14:03:22');
  is(exactText(at, true), '2026-11-05 14:03:22.007 UTC');
});

parts('texts of pages keep their order, and only web addresses are links', () => {
  is(plain('a\u202egnp.exe\u0000\u200b'), 'a gnp.exe  ');
  is(plain('abcdef', 3), 'abc…');
  is(escaped('"\u202e"\n\t\u0007'), '"\\u202e"\n\t\\u0007');
  is(webAddress('https://example.com/a b'), 'https://example.com/a%20b');
  for (const text of ['javascript:alert(1)', 'data:text/html,x', 'file:///etc', '/x', 'x', '']) {
    is(webAddress(text), undefined, text);
  }
  equal(labelsOf({ a: 'b', c: { d: 1 }, e: 2 }, 2), ['a: b', 'c: {"d":1}']);
  equal(labelsOf(undefined, 2), []);
});

parts('a playlist is its init segment and its segments by time', () => {
  const text = [
    ...['#EXTM3U', '#EXT-X-MAP:URI="/init?x=1"', '#EXTINF:4.0,', '/a?y=1'],
    ...['#EXTINF:2.5,', '/b?y=2', '#EXT-X-ENDLIST', ''],
  ].join('\n');
  const { initUrl, segments, isEnded } = playlistOf(text);
  is(initUrl, '/init?x=1');
  is(isEnded, true);
  equal(segments, [
    { url: '/a?y=1', start: 0, end: 4 },
    { url: '/b?y=2', start: 4, end: 6.5 },
  ]);
  equal(
    [0, 4, 6.4, 99].map((at) => segmentAt(segments, at)),
    [0, 1, 1, 1],
  );
  is(segmentAt([], 1), -1);
  is(playlistOf('#EXTM3U\n').isEnded, false);
});

parts('the codec is read from the box avcC', () => {
  const init = Buffer.concat([Buffer.from('....avcC'), Buffer.from([1, 0x42, 0xe0, 0x1f, 0])]);
  is(codecOf(init), 'avc1.42E01F');
  is(codecOf(Buffer.from('nothing here')), undefined);
});

parts.run();
