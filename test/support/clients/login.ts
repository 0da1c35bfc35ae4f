/**
 * A site with a login, and functions that log in to it, for journeys about contexts. The login is
 * stored in a session cookie, a persistent cookie, localStorage, sessionStorage and IndexedDB; each
 * contains a text that must not occur anywhere on disk.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { must } from '../../../proto/common/must.ts';

export type LoginSite = AsyncDisposable & {
  url: string;
  /** Opens the gate: handlers whose `next` is 'gate' continue, now and later. */
  open(): void;
  /** The content of each store after a login. */
  secrets: Record<'cookie' | 'session' | 'local' | 'tab' | 'indexed', string>;
};

export async function startLogin(): Promise<LoginSite> {
  const secret = () => `marked-${randomBytes(12).toString('hex')}`;
  const [cookie, session, local, tab, indexed] = Array.from({ length: 5 }, secret);
  const secrets = {
    cookie: must(cookie, 'cookie'),
    session: must(session, 'session'),
    local: must(local, 'local'),
    tab: must(tab, 'tab'),
    indexed: must(indexed, 'indexed'),
  };
  const gate = Promise.withResolvers<void>();
  const server = createServer(async (request, response) => {
    if (request.url === '/gate') await gate.promise;
    const sent = request.headers.cookie ?? '';
    const cookies = [`kept=${secrets.cookie}; Max-Age=99999`, `now=${secrets.session}; HttpOnly`];
    const isLogin = request.url === '/login';
    const gone = ['kept=; Max-Age=0', 'now=; Max-Age=0'];
    response.writeHead(200, {
      'content-type': 'text/html',
      ...(isLogin ? { 'set-cookie': cookies } : {}),
      ...(request.url === '/logout' ? { 'set-cookie': gone } : {}),
    });
    const texts = { local: secrets.local, tab: secrets.tab, indexed: secrets.indexed };
    const seen = {
      cookie: sent.includes(secrets.cookie),
      session: sent.includes(secrets.session),
    };
    response.end(`<!doctype html><link rel="icon" href="data:,"><script>
      const login = ${isLogin ? JSON.stringify(texts) : 'undefined'};
      const isOut = ${request.url === '/logout'};
      const seen = ${JSON.stringify(seen)};
      ${PAGE}</script>`);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP server has no port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    open: gate.resolve,
    secrets,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** `window.state` resolves with the page's content of each store. */
const PAGE = `
  const db = new Promise((done, fail) => {
    const asked = indexedDB.open('site', 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore('store');
    asked.onsuccess = () => done(asked.result);
    asked.onerror = () => fail(asked.error);
  });
  const settled = (asked) => new Promise((done, fail) => {
    asked.onsuccess = () => done(asked.result);
    asked.onerror = () => fail(asked.error);
  });
  window.state = (async () => {
    const open = await db;
    const store = (mode) => open.transaction('store', mode).objectStore('store');
    if (login) {
      localStorage.setItem('login', login.local);
      sessionStorage.setItem('login', login.tab);
      await settled(store('readwrite').put(login.indexed, 'login'));
    }
    if (isOut) {
      localStorage.clear();
      sessionStorage.clear();
      await settled(store('readwrite').clear());
    }
    return {
      ...seen,
      local: localStorage.getItem('login'),
      tab: sessionStorage.getItem('login'),
      indexed: (await settled(store('readonly').get('login'))) ?? null,
    };
  })();`;

/**
 * `login` loads and saves the context; `visit` loads only the context that its invocation names.
 * Both open params.url and return the content of the page's stores, then do what params.next names.
 */
export function loginProject(contextId: string): Record<string, string> {
  const config = { browserSettings: { context: { id: contextId, persist: true } } };
  return {
    'package.json': '{"name":"login","version":"1.0.0","private":true,"type":"module"}',
    'index.ts': `import { defineFn } from 'tabern';
${HANDLER}
defineFn('login', go, { sessionConfig: ${JSON.stringify(config)} });
defineFn('visit', go);
`,
  };
}

const HANDLER = `
const go = async (ctx, { url, next }) => {
  const socket = new WebSocket(ctx.session.connectUrl);
  const waiting = new Map();
  const loads = [];
  let id = 0;
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (message.method === 'Page.loadEventFired') loads.forEach((done) => done());
    waiting.get(message.id)?.(message);
  };
  await new Promise((done, fail) => { socket.onopen = done; socket.onerror = fail; });
  const call = async (method, params = {}, sessionId) => {
    id += 1;
    const answer = new Promise((done) => waiting.set(id, done));
    socket.send(JSON.stringify({ id, method, params, sessionId }));
    const { result, error } = await answer;
    if (error) throw new Error(method + ': ' + error.message);
    return result;
  };
  const { targetInfos } = await call('Target.getTargets');
  const { targetId } = targetInfos.find(({ type }) => type === 'page');
  const { sessionId } = await call('Target.attachToTarget', { targetId, flatten: true });
  await call('Page.enable', {}, sessionId);
  const loaded = new Promise((done) => loads.push(done));
  await call('Page.navigate', { url }, sessionId);
  await loaded;
  const { result } = await call('Runtime.evaluate', {
    expression: 'window.state', awaitPromise: true, returnByValue: true,
  }, sessionId);
  console.log('visited');
  if (next === 'throw') throw new Error('after the login');
  if (next === 'hang') await new Promise(() => {});
  if (next === 'gate') await fetch(new URL('/gate', url));
  return result.value;
};`;
