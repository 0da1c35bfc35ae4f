/** Answers of tools: their limits, their errors. Core is the test's own. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { TEXT_MAX_CHARS } from '../../../../gateway/routes/mcp/short-text.ts';
import { must } from '../../../../proto/common/must.ts';
import type { Invocation } from '../../../../proto/gen/tabern/v1/invocations.pb.ts';
import type { Session } from '../../../../proto/gen/tabern/v1/sessions.pb.ts';
import { Fault } from '../../../../proto/rpc/errors.ts';
import { ask, type handlersOf, json, openGateway } from '../../sessions/runner.ts';

const test = suite('gateway/routes/mcp/answers');
const ID = '01a1fbc0-0000-7000-8000-000000000000';
const T = new Date(0);
const PAGE = { url: 'http://example.com/', title: 'Title', status: 200 };

type Some = Parameters<typeof handlersOf>[0];
type Result = {
  content: { type: string; text?: string; data?: string; mimeType?: string }[];
  isError?: boolean;
  structuredContent?: object;
};

async function resultOf(some: Some, name: string, given: object): Promise<Result> {
  await using gateway = await openGateway(some);
  const message = {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name, arguments: given },
  };
  const answer = await ask(gateway.url, 'POST', '/mcp', json(message));
  assert.is(answer.status, 200, answer.text);
  return (answer.json as { result: Result }).result;
}

async function textOf(some: Some, name: string, given: object): Promise<string> {
  const { content } = await resultOf(some, name, given);
  return content.map(({ text = '' }) => text).join('\n');
}

function invocation(more: Partial<Invocation>): Some {
  const made: Invocation = {
    id: ID,
    projectId: 'p',
    functionId: ID,
    versionId: 'v',
    sessionId: 's',
    region: 'r',
    params: {},
    status: 'COMPLETED',
    results: undefined,
    cause: undefined,
    trigger: undefined,
    endedAt: T,
    createdAt: T,
    updatedAt: T,
    startedAt: T,
    expiresAt: T,
    ...more,
  };
  return {
    invocations: {
      invokeFunction: async () => ({ invocation: made }),
      getInvocation: async () => ({ invocation: made }),
      listInvocationLogs: async () => ({
        logs: Array.from({ length: 3_000 }, (_, n) => ({ message: `line ${n}`, timestamp: 0 })),
        total: 3_000,
      }),
    },
  };
}

test('a result over the limit is cut, with the address of all of it', async () => {
  const resultsJson = JSON.stringify({ text: 'x'.repeat(3 * TEXT_MAX_CHARS) });
  const text = await textOf(invocation({ resultsJson }), 'function_invoke', { function: ID });
  assert.ok(text.length < TEXT_MAX_CHARS + 500, String(text.length));
  assert.match(text, `http://127.0.0.1:`);
  assert.match(text, `/v1/functions/invocations/${ID}`);
  const small = await textOf(invocation({ resultsJson: '{"a":1}' }), 'function_invoke', {
    function: ID,
  });
  assert.ok(small.endsWith('\n{"a":1}'), small);
});

test('of a log over the limit, the end is shown', async () => {
  const text = await textOf(invocation({}), 'function_logs', { invocationId: ID });
  assert.ok(text.length < TEXT_MAX_CHARS + 500, String(text.length));
  assert.ok(text.endsWith('line 2999') && !text.includes('line 0\n'), text.slice(-200));
  assert.match(text, `/v1/functions/invocations/${ID}/logs`);
});

test('after a long wait for the outcome, there is time to read the log', async () => {
  const { invocations } = invocation({});
  const { now } = performance;
  const leftMs: number[] = [];
  const some: Some = {
    invocations: {
      ...invocations,
      async getInvocation(request, call) {
        performance.now = () => now.call(performance) + 45_000;
        return await must(invocations?.getInvocation, 'a handler')(request, call);
      },
      async listInvocationLogs(_, { deadline }) {
        leftMs.push(deadline - performance.now());
        return { logs: [], total: 0 };
      },
    },
  };
  try {
    await textOf(some, 'function_logs', { invocationId: ID, wait: 45 });
    assert.ok(must(leftMs[0], 'the log was read') > 10_000, `${leftMs} ms`);
  } finally {
    performance.now = now;
  }
});

test('a failed invocation shows its cause, without a stack', async () => {
  const cause = { code: 'WORKLOAD_ERROR', name: 'TypeError', message: 'no', stack: 'at secret.ts' };
  const text = await textOf(invocation({ status: 'FAILED', cause }), 'function_invoke', {
    function: ID,
  });
  assert.match(text, 'WORKLOAD_ERROR: TypeError: no');
  assert.not.match(text, 'secret.ts');
});

test('a page over the limit is read on by its offset', async () => {
  const markdown = Array.from({ length: 9_000 }, (_, n) => `${n}\n`).join('');
  const contentType = 'text/markdown';
  const readMarkdown = async () => ({ sessionId: 's', page: PAGE, contentType, markdown });
  const parts: string[] = [];
  for (let offset = 0; offset < markdown.length; offset += TEXT_MAX_CHARS) {
    const text = await textOf({ oneShots: { readMarkdown } }, 'fetch', { url: PAGE.url, offset });
    const [start, end] = [text.indexOf('\n\n'), text.lastIndexOf('\n\n[')];
    assert.is(text.slice(0, start), 'http://example.com/  200  Title  session s');
    assert.match(text.slice(end), `characters ${offset} to`);
    parts.push(text.slice(start + 2, end));
  }
  assert.is(parts.length, 3);
  assert.is(parts.join(''), markdown);
});

test('a picture is an image; one over the limit is an error that says what to change', async () => {
  const screenshotOf = (bytes: number) => async () => ({
    sessionId: 's',
    page: PAGE,
    contentType: 'text/html',
    data: Buffer.alloc(bytes).toString('base64'),
  });
  const taken = await resultOf(
    { oneShots: { takeScreenshot: screenshotOf(750_000) } },
    'screenshot',
    { url: PAGE.url },
  );
  const [picture] = taken.content;
  assert.equal([picture?.type, picture?.mimeType], ['image', 'image/jpeg']);
  const large = await resultOf(
    { oneShots: { takeScreenshot: screenshotOf(750_001) } },
    'screenshot',
    { url: PAGE.url },
  );
  assert.is(large.isError, true);
  assert.is(large.content.length, 1);
  assert.match(large.content[0]?.text ?? '', /The picture has 750001 bytes.*Use jpeg/);
});

test('an unexpected error is answered without its text', async () => {
  const listSessions = () => {
    throw new Error('a secret');
  };
  // a time that no Date has is an error in the tool
  const listInvocationLogs = async () => ({ logs: [{ message: 'x', timestamp: NaN }], total: 1 });
  const { invocations } = invocation({});
  for (const [some, name, given] of [
    [{ sessions: { listSessions } }, 'session_list', {}],
    [
      { invocations: { ...invocations, listInvocationLogs } },
      'function_logs',
      { invocationId: ID },
    ],
  ] as const) {
    const { content, isError } = await resultOf(some, name, given);
    const answer = [{ type: 'text', text: 'An unexpected error occurred.' }];
    assert.equal([isError, content], [true, answer]);
  }
});

test('a limit is a result with the sentence of REST', async () => {
  const createSession = () => {
    throw new Fault('CONCURRENCY_LIMIT', 'limit 3, currently 3');
  };
  const { content, isError } = await resultOf({ sessions: { createSession } }, 'session_start', {});
  assert.equal([isError, content[0]?.text], [true, 'limit 3, currently 3']);
});

function session(more: Partial<Session> = {}): Session {
  return {
    id: ID,
    createdAt: T,
    updatedAt: T,
    projectId: 'p',
    startedAt: T,
    endedAt: undefined,
    expiresAt: T,
    status: 'RUNNING',
    proxyBytes: 0,
    keepAlive: true,
    region: 'r',
    userMetadata: undefined,
    connectUrl: '/connect?signingKey=secret-of-the-session',
    signingKey: 'secret-of-the-session',
    labels: [],
    ...more,
  };
}

test('a session ends after 1,800 s unless its timeout is given; null is none', async () => {
  const seen: unknown[] = [];
  const createSession = async ({ timeout }: { timeout?: number | undefined }) => {
    seen.push(timeout);
    return { session: session() };
  };
  for (const given of [{}, { timeout: null }, { timeout: 60 }]) {
    await textOf({ sessions: { createSession } }, 'session_start', given);
  }
  assert.equal(seen, [1_800, 1_800, 60]);
});

test('session_start has the connectUrl only on request; list, end never', async () => {
  const sessions = {
    createSession: async () => ({ session: session() }),
    listSessions: async () => ({ sessions: [session()] }),
    updateSession: async () => ({ session: session() }),
  };
  const shown = await textOf({ sessions }, 'session_start', { connectUrl: true });
  assert.match(shown, /ws:\/\/127\.0\.0\.1:\d+\/connect\?signingKey=secret-of-the-session/);
  for (const [name, given] of [
    ['session_start', {}],
    ['session_start', { connectUrl: false }],
    ['session_list', {}],
    ['session_end', { sessionId: ID }],
  ] as const) {
    const result = await resultOf({ sessions }, name, given);
    assert.not.match(JSON.stringify(result), 'secret-of-the-session');
    assert.match(JSON.stringify(result), ID);
  }
});

test('a list has pages', async () => {
  const many = Array.from({ length: 50 }, (_, n) => session({ id: `id-${n}` }));
  const listSessions = async () => ({ sessions: many });
  const some = { sessions: { listSessions } };
  const first = await textOf(some, 'session_list', { limit: 20 });
  assert.match(first, '[30 more: offset 20');
  const last = await textOf(some, 'session_list', { limit: 20, offset: 40 });
  assert.ok(last.startsWith('id-40 ') && !last.includes('more:'), last);
  assert.is(await textOf(some, 'session_list', { offset: 50 }), 'There are no more sessions.');
});

test.run();
