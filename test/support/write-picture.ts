/**
 * `node test/support/write-picture.ts`: the picture of README.md, which is the live view of a real
 * session that shows the guide of the service it runs in.
 */
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { must } from '../../proto/common/must.ts';
import { until } from './poll.ts';
import { boot } from './service/stack.ts';

const PICTURE = fileURLToPath(new URL('../../gateway/web/docs/live-view.jpg', import.meta.url));
const SIZE = { width: 1280, height: 860 };

await using stack = await boot();
type Session = { id: string; connectUrl: string };
const json = { browserSettings: { viewport: { width: 1280, height: 780 } } };
const { id, connectUrl } = await stack.call<Session>('/v1/sessions', { json });
const session = await chromium.connectOverCDP(connectUrl);
const page = must(session.contexts()[0]?.pages()[0], 'the page of the session');
await page.goto(`${stack.url}/docs`);
const view = await stack.call<{ debuggerUrl: string }>(`/v1/sessions/${id}/debug`);
const viewer = await chromium.launch({ executablePath: '/usr/bin/chromium-headless-shell' });
const person = await viewer.newPage({ viewport: SIZE });
await person.goto(view.debuggerUrl);
const canvas = person.locator('canvas').first();
type Canvas = { getContext(kind: '2d'): { getImageData(...box: number[]): { data: number[] } } };
await until(() =>
  canvas.evaluate((one) => {
    const { data } = (one as unknown as Canvas).getContext('2d').getImageData(40, 40, 1, 1);
    return (data[3] ?? 0) > 0; // the picture of the page has arrived
  }),
);
await person.screenshot({ path: PICTURE, type: 'jpeg', quality: 60 });
await viewer.close();
await session.close();
