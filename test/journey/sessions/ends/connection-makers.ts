/**
 * What makes each row of the guide's tables of connections happen, by the beginning of its cause:
 * how a connection ends before its session, and how an upgrade is refused.
 */
import { once } from 'node:events';
import { request } from 'node:http';
import { WebSocket } from 'ws';
import { must } from '../../../../proto/common/must.ts';
import { type Apart, startApart } from '../../../faults/apart.ts';
import { until } from '../../../support/poll.ts';
import { operatorOf } from '../../../support/service/operator.ts';
import { processesNaming, signalAll } from '../../../support/service/processes.ts';
import type { Stack } from '../../../support/service/stack.ts';
import {
  ask,
  attached,
  begun,
  type Connected,
  closeOf,
  connected,
  create,
  evaluate,
  release,
  type Session,
} from './tables.ts';

/** `seldom`: it takes minutes, and happens in a whole run. */
type Pace = 'usual' | 'seldom';
type Closed = Pick<Connected, 'session' | 'closed'>;

const KEPT = { keepAlive: true, browserSettings: { recordSession: false, logSession: false } };

export const CLOSES: Readonly<Record<string, [Pace, (stack: Stack) => Promise<Closed>]>> = {
  'a client sent `Browser.close`': ['usual', (stack) => send(stack, BROWSER_CLOSE)],
  'its message was longer': ['usual', (stack) => send(stack, 'x'.repeat((16 << 20) + 1))],
  'its message was not text': ['usual', (stack) => send(stack, Buffer.from(BROWSER_CLOSE))],
  'Chrome said more': [
    'usual',
    async (stack) => {
      const made = await begun(stack, KEPT);
      await evaluate(made.client, `'x'.repeat(${129 << 20})`);
      return made;
    },
  ],
  'its page was closed': ['usual', closePage],
  'another WebSocket': ['usual', resumeAgain],
  'its API key was revoked': ['usual', revoke],
  'no message was sent': ['seldom', (stack) => begun(stack, KEPT)],
  'the client did not read': ['seldom', leaveUnread],
};

const BROWSER_CLOSE = '{"id":1,"method":"Browser.close"}';

async function send(stack: Stack, message: string | Buffer): Promise<Closed> {
  const made = await begun(stack, KEPT);
  made.client.send(message);
  return made;
}

/** A WebSocket to one page, as of a debugger. */
async function closePage(stack: Stack): Promise<Closed> {
  const { session, client } = await begun(stack, KEPT);
  await ask(client, { id: 8, method: 'Target.createTarget', params: { url: 'about:blank' } });
  const { targetId } = await attached(client);
  const url = session.connectUrl.replace('/connect?', `/devtools/page/${targetId}?`);
  const page = await connected(session, url);
  await ask(client, { id: 9, method: 'Target.closeTarget', params: { targetId } });
  return page;
}

/** The first message of a resumable connection has its token. */
async function resumable(session: Session): Promise<Connected & { token: string }> {
  const client = new WebSocket(`${session.connectUrl}&resume=new`);
  const closed = closeOf(client);
  const [bytes] = await once(client, 'message');
  const { params } = JSON.parse(String(bytes)) as { params: { token: string } };
  return { session, client, closed, token: params.token };
}

async function resumeAgain(stack: Stack): Promise<Closed> {
  const { token, ...made } = await resumable(await create(stack, KEPT));
  await connected(made.session, `${made.session.connectUrl}&resume=${token}&received=0`);
  return made;
}

async function revoke(stack: Stack): Promise<Closed> {
  using operator = operatorOf(stack.dataDir);
  const { operators, options } = operator;
  const wanted = { project: 'default', name: 'leaked' };
  const { key, apiKey } = await operators.createApiKey(wanted, options);
  const session = await create(stack, KEPT);
  const url = `ws${stack.url.slice(4)}?apiKey=${key}&sessionId=${session.id}`;
  const made = await connected(session, url);
  await operators.revokeApiKey({ id: must(apiKey, 'the key').id }, options);
  return made;
}

/** Chrome answers with far more than sockets and the relay keep. */
async function leaveUnread(stack: Stack): Promise<Closed> {
  const { session, client, closed } = await begun(stack, KEPT);
  const answers = Array.from({ length: 12 }, () => `'x'.repeat(${8 << 20})`);
  await evaluate(client, ...answers);
  client.pause();
  const timer = setTimeout(() => client.resume(), 60_000); // twice the time that it is given
  return { session, closed: closed.finally(() => clearTimeout(timer)) };
}

/** Of a gateway that is a process of its own. */
export const GATEWAY_CLOSES: Readonly<Record<string, (apart: Apart) => Promise<Closed>>> = {
  'its gateway ended': async (apart) => {
    const made = await begun(apart, KEPT);
    await endGateway(apart, 'SIGTERM');
    return made;
  },
  'the same, of a connection that can': async (apart) => {
    const made = await resumable(await create(apart, KEPT));
    await endGateway(apart, 'SIGTERM');
    return made;
  },
  'its gateway was killed': async (apart) => {
    const made = await begun(apart, KEPT);
    await endGateway(apart, 'SIGKILL');
    return made;
  },
};

/** Starts it again. */
async function endGateway(apart: Apart, signal: NodeJS.Signals): Promise<void> {
  const found = () =>
    processesNaming(apart.dataDir).filter(({ command }) => command.endsWith(' gateway'));
  signalAll(found(), signal);
  await until(() => found().length === 0);
  apart.start('gateway');
  await until(() => isUp(apart));
}

/** The statuses of refused upgrades; all are those of the row. */
export const REFUSALS: Readonly<Record<string, (stack: Stack) => Promise<number[]>>> = {
  'it is no WebSocket upgrade': async (stack) => {
    const { connectUrl } = await create(stack, KEPT);
    return [
      await refusal(connectUrl, { 'sec-websocket-version': '8' }),
      await refusal(`${connectUrl}&signingKey=x`),
    ];
  },
  'the key is absent': async ({ url }) => [
    await refusal(url),
    await refusal(`${url}/connect?signingKey=x`),
    await refusal(`${url}?apiKey=x&sessionId=${crypto.randomUUID()}`),
  ],
  'there is no such session': async (stack) => {
    const { connectUrl } = await create(stack, KEPT);
    return [
      await refusal(`${stack.url}?apiKey=${stack.apiKey}&sessionId=${crypto.randomUUID()}`),
      await refusal(connectUrl.replace('/connect?', '/devtools/page/0?')),
      await refusal(connectUrl.replace('/connect?', '/other?')),
    ];
  },
  'the session has ended': async (stack) => {
    const session = await create(stack, KEPT);
    await release(stack, session);
    return [await refusal(session.connectUrl)];
  },
  'the URL is longer': async ({ url }) => [await refusal(`${url}?apiKey=${'x'.repeat(8 << 10)}`)],
  'the session has 32': async (stack) => {
    const session = await create(stack, KEPT);
    await Promise.all(Array.from({ length: 32 }, () => connected(session)));
    return [await refusal(session.connectUrl)];
  },
};

/** Of roles that are processes of their own. */
export const ROLE_REFUSALS: Readonly<Record<string, (apart: Apart) => Promise<number[]>>> = {
  'core is away': async (apart) => {
    const { connectUrl } = await create(apart, KEPT);
    await apart.end('core');
    const status = await refusal(connectUrl);
    apart.start('core');
    await until(() => isUp(apart));
    return [status];
  },
  'the runner cannot be reached': async (apart) => {
    const { connectUrl } = await create(apart, KEPT);
    await apart.end('runner');
    return [await refusal(connectUrl)];
  },
};

const isUp = (apart: Apart): Promise<boolean> =>
  apart.fetch('/v1/projects').then(
    ({ ok }) => ok,
    () => false,
  );

async function refusal(url: string, headers: Record<string, string> = {}): Promise<number> {
  const asked = request(url.replace(/^ws/, 'http'), {
    headers: {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': Buffer.alloc(16).toString('base64'),
      ...headers,
    },
  });
  asked.on('upgrade', (_, socket) => socket.destroy());
  asked.end();
  const answered = once(asked, 'response', { signal: AbortSignal.timeout(60_000) });
  const upgraded = once(asked, 'upgrade').then(() => [{ statusCode: 101 }]);
  const [response] = await Promise.race([answered, upgraded]);
  response.resume?.();
  return response.statusCode;
}

export const openApart = () => startApart({ TABERN_SESSIONS_MAX: '8' });
