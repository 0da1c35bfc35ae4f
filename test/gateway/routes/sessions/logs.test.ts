/** GET /v1/sessions/{id}/logs: one array of any length, with back-pressure. */
import { once } from 'node:events';
import { get } from 'node:http';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type {
  ListSessionLogsRequest,
  ListSessionLogsResponse,
  SessionLog,
} from '../../../../proto/gen/tabern/v1/sessions.pb.ts';
import { Fault, notFound } from '../../../../proto/rpc/errors.ts';
import { until } from '../../../support/poll.ts';
import { ask, KEY, openGateway } from '../../sessions/runner.ts';

const test = suite('gateway/routes/sessions/logs');
const ID = '018f0000-0000-7000-8000-000000000000';
const PATH = `/v1/sessions/${ID}/logs`;

function entry(method: string, more: Partial<SessionLog> = {}): SessionLog {
  return {
    method,
    pageId: 0,
    sessionId: ID,
    timestamp: 5,
    frameId: undefined,
    loaderId: undefined,
    request: { timestamp: 5, params: {}, rawBody: '{}' },
    response: undefined,
    ...more,
  };
}

/** A log in these pages, and the positions that were requested. */
function pagesOf(pages: readonly SessionLog[][]) {
  const asked: (number | undefined)[] = [];
  return {
    asked,
    sessions: {
      async listSessionLogs(wanted: ListSessionLogsRequest): Promise<ListSessionLogsResponse> {
        asked.push(wanted.from);
        const from = wanted.from ?? 0;
        const next = from + 1 < pages.length ? from + 1 : undefined;
        return { logs: pages[from] ?? [], next, end: from + 1 };
      },
    },
  };
}

test('the pages of a log are one array, each entry as the contract has it', async () => {
  const response = { timestamp: 7, result: { deep: [1, { a: null }] }, rawBody: '{"é":1}' };
  const full = entry('Page.navigate', { response, frameId: 'F', loaderId: 'L', pageId: 2 });
  const { sessions, asked } = pagesOf([[full], [], [entry('Page.a'), entry('Page.b')]]);
  await using gateway = await openGateway({ sessions });
  const { status, headers, json } = await ask(gateway.url, 'GET', PATH);
  assert.is(status, 200);
  assert.is(headers['content-type'], 'application/json; charset=utf-8');
  assert.equal(asked, [undefined, 1, 2]);
  const bare = { pageId: 0, sessionId: ID, timestamp: 5 };
  const request = { timestamp: 5, params: {}, rawBody: '{}' };
  assert.equal(json, [
    {
      method: 'Page.navigate',
      pageId: 2,
      sessionId: ID,
      timestamp: 5,
      request,
      response,
      frameId: 'F',
      loaderId: 'L',
    },
    { ...bare, method: 'Page.a', request },
    { ...bare, method: 'Page.b', request },
  ]);
});

test('a log without entries is an empty array', async () => {
  const { sessions } = pagesOf([[], []]);
  await using gateway = await openGateway({ sessions });
  assert.equal((await ask(gateway.url, 'GET', PATH)).json, []);
});

test('core’s refusals and unknown parameters have the usual responses', async () => {
  const sessions = {
    async listSessionLogs(): Promise<never> {
      throw notFound('Session', ID);
    },
  };
  await using gateway = await openGateway({ sessions });
  const missing = await ask(gateway.url, 'GET', PATH);
  const body = { statusCode: 404, error: 'Not Found', message: 'Session not found.' };
  assert.equal(missing.json, body);
  assert.is((await ask(gateway.url, 'GET', `${PATH}?x=1`)).status, 400);
  assert.is((await ask(gateway.url, 'GET', `${PATH}?from=x`)).status, 400);
  assert.is((await fetch(gateway.url + PATH)).status, 401);
});

test('a truncated log does not look complete', async () => {
  let calls = 0;
  const sessions = {
    async listSessionLogs(): Promise<ListSessionLogsResponse> {
      calls += 1;
      if (calls === 1) return { logs: [entry('Page.a')], next: 1, end: 1 };
      throw new Fault('CORE_UNAVAILABLE', 'core is not there');
    },
  };
  await using gateway = await openGateway({ sessions });
  const headers = { 'x-svc-api-key': KEY };
  const answer = await fetch(gateway.url + PATH, { headers });
  assert.is(answer.status, 200);
  assert.match(await answer.text().catch(String), /terminated/);
});

test('a log is read as fast as the client reads, and not after it has disconnected', async () => {
  const big = entry('Page.a', {
    request: { timestamp: 1, params: {}, rawBody: 'x'.repeat(1 << 20) },
  });
  const { sessions, asked } = pagesOf(Array.from({ length: 500 }, () => [big]));
  await using gateway = await openGateway({ sessions });
  const request = get(gateway.url + PATH, { headers: { 'x-svc-api-key': KEY } });
  const [answer] = (await once(request, 'response')) as [NodeJS.ReadableStream];
  answer.pause();
  let seen = -1;
  await until(() => {
    const isStill = asked.length === seen;
    seen = asked.length;
    return isStill && seen > 1;
  });
  assert.ok(asked.length < 50, `${asked.length} of 500 pages`);
  request.destroy();
  await once(request, 'close');
  const before = asked.length;
  assert.is((await ask(gateway.url, 'GET', `${PATH}?from=499`)).status, 200);
  assert.ok(asked.length <= before + 2);
});

test.run();
