/** Attempts of a hostile project through its own browser, over raw CDP. */

type Said = { id?: number; result?: Record<string, unknown>; error?: { message: string } };
type Call = (
  method: string,
  params?: object,
  sessionId?: string,
) => Promise<Record<string, unknown>>;
/** `patienceMs`: an attempt that has not succeeded by then counts as refused. */
type Aim = { port: number; dataDir: string; secret: string; patienceMs: number };

async function open(url: string, { patienceMs }: Aim): Promise<{ call: Call; close(): void }> {
  const socket = new WebSocket(url);
  const waiting = new Map<number, (said: Said) => void>();
  let last = 0;
  socket.addEventListener('message', ({ data }) => {
    const said = JSON.parse(String(data)) as Said;
    if (said.id !== undefined) waiting.get(said.id)?.(said);
  });
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve);
    socket.addEventListener('error', () => reject(new Error('refused')));
  });
  return {
    close: () => socket.close(),
    call: (method, params = {}, sessionId = undefined) =>
      new Promise((resolve, reject) => {
        last += 1;
        const id = last;
        const late = setTimeout(() => reject(new Error('no answer')), 2 * patienceMs);
        waiting.set(id, ({ result = {}, error }) => {
          clearTimeout(late);
          if (error) reject(new Error(error.message));
          else resolve(result);
        });
        socket.send(JSON.stringify({ id, method, params, sessionId }));
      }),
  };
}

async function attempt(act: () => Promise<unknown>): Promise<string> {
  try {
    return JSON.stringify((await act()) ?? 'done').slice(0, 2_000);
  } catch (error) {
    return `no: ${(error as Error).message}`;
  }
}

/** Commands that must be refused, from any client and in any session. */
function commands(aim: Aim, targetId: string): [string, object][] {
  return [
    ['Browser.crash', {}],
    ['Browser.getBrowserCommandLine', {}],
    ['Browser.executeBrowserCommand', { commandId: 'openTabSearch' }],
    ['SystemInfo.getInfo', {}],
    ['SystemInfo.getProcessInfo', {}],
    ['Target.setRemoteLocations', { locations: [{ host: '127.0.0.1', port: aim.port }] }],
    ['Target.exposeDevToolsProtocol', { targetId }],
    ['Target.sendMessageToTarget', { targetId, message: '{"id":1,"method":"Browser.crash"}' }],
    ['Target.createBrowserContext', { proxyServer: 'pac+http://127.0.0.1/' }],
    ['Target.createTarget', { url: 'file:///etc/passwd' }],
    ['Target.createTarget', { url: ' \tfi\nle:///etc/passwd' }],
    ['Target.createTarget', { url: 'chrome://version' }],
    ['Tethering.bind', { port: 9229 }],
    ['Extensions.loadUnpacked', { path: '/usr' }],
    ['Tracing.start', { tracingBackend: 'system' }],
    ['constructor', {}],
  ];
}

/** Navigations that a client requests. */
const URLS = [
  'file:///etc/passwd',
  'FILE:///etc/passwd',
  'view-source:file:///etc/passwd',
  'chrome://version',
  'devtools://devtools/bundled/inspector.html',
  'filesystem:file:///x',
  'javascript:1',
  '\u0000file:///etc/passwd',
];

/** Attempts of script in a page; each expression returns what it reached, or fails. */
function scripts({ port, patienceMs }: Aim): Record<string, string> {
  const site = `http://127.0.0.1:${port}`;
  const late = `new Promise((done) => setTimeout(() => done('no: silence'), ${patienceMs}))`;
  const race = (act: string): string => `Promise.race([${act}, ${late}])`;
  return {
    'fetch the machine': `fetch('${site}/').then((r) => r.text())`,
    'fetch a file': `fetch('file:///etc/passwd').then((r) => r.text())`,
    'open a file': `(() => { const it = open('file:///etc/passwd'); return it?.document.body.innerText || Promise.reject('empty'); })()`,
    'go to a file': `(() => { location.href = 'file:///etc/passwd'; return Promise.reject(location.href); })()`,
    'a frame of a file': race(`new Promise((done, fail) => {
      const it = document.createElement('iframe'); it.src = 'file:///etc/passwd';
      it.onload = () => { try { done(it.contentDocument.body.innerText || 'no: empty'); } catch (e) { done('no: ' + e); } };
      document.body.append(it); })`),
    'a worker of the machine': race(`new Promise((done) => {
      const code = 'fetch("${site}/worker").then((r) => r.text()).then(postMessage, (e) => postMessage("no: " + e))';
      const it = new Worker(URL.createObjectURL(new Blob([code]))); it.onmessage = (e) => done(e.data);
      it.onerror = (e) => done('no: ' + e.message); })`),
    'a socket to the machine': race(`new Promise((done) => {
      const it = new WebSocket('ws://127.0.0.1:${port}/socket');
      it.onopen = () => done('open'); it.onerror = () => done('no: error'); })`),
    'WebRTC candidates': race(`(async () => {
      const it = new RTCPeerConnection({ iceServers: [{ urls: 'stun:127.0.0.1:${port}' }] });
      it.createDataChannel('x'); const seen = [];
      it.onicecandidate = ({ candidate }) => candidate?.candidate && seen.push(candidate.candidate);
      await it.setLocalDescription(await it.createOffer());
      await new Promise((r) => setTimeout(r, 1500));
      return seen.filter((one) => /typ (srflx|relay)/.test(one)).join() || 'no: none'; })()`),
    'a service worker': `navigator.serviceWorker.register('data:text/javascript,').then(() => 'registered')`,
  };
}

/** A page has no body yet when the response to its navigation arrives. */
const LOADED = `new Promise((done) =>
  document.readyState === 'complete' ? done() : addEventListener('load', done))`;

export async function browserAttacks(connectUrl: string, aim: Aim): Promise<object> {
  const [mine, other] = await Promise.all([open(connectUrl, aim), open(connectUrl, aim)]);
  const { targetInfos } = await mine.call('Target.getTargets');
  const targetId = String((targetInfos as { targetId: string; type: string }[])[0]?.targetId);
  // requested nested; the result must be flat nevertheless, and restricted
  const attached = await mine.call('Target.attachToTarget', { targetId, flatten: false });
  const page = String(attached['sessionId']);
  const inner = await mine.call('Target.attachToBrowserTarget');
  const found: Record<string, string> = {};
  for (const [from, sessionId] of [
    ['root', undefined],
    ['page', page],
    ['inner', String(inner['sessionId'])],
  ] as const) {
    for (const [method, params] of commands(aim, targetId)) {
      const name = `${from} ${method} ${JSON.stringify(params).slice(0, 60)}`;
      found[name] = await attempt(() => mine.call(method, params, sessionId));
    }
  }
  for (const url of URLS) {
    found[`navigate ${JSON.stringify(url)}`] = await attempt(() =>
      mine.call('Page.navigate', { url }, page),
    );
  }
  found["another client's session"] = await attempt(() =>
    other.call('Runtime.evaluate', { expression: '1' }, page),
  );
  found["detach another client's session"] = await attempt(() =>
    other.call('Target.detachFromTarget', { sessionId: page }),
  );
  found['a session of nobody'] = await attempt(() => other.call('Page.enable', {}, 'A'.repeat(32)));
  found['files to a page'] = await attempt(async () => {
    await mine.call(
      'Runtime.evaluate',
      { expression: 'document.body.innerHTML="<input type=file>"' },
      page,
    );
    const { root } = (await mine.call('DOM.getDocument', {}, page)) as { root: { nodeId: number } };
    const input = await mine.call(
      'DOM.querySelector',
      { nodeId: root.nodeId, selector: 'input' },
      page,
    );
    const files = ['/data/profile/Local State'];
    return mine.call('DOM.setFileInputFiles', { nodeId: input['nodeId'], files }, page);
  });
  for (const [name, expression] of Object.entries(scripts(aim))) {
    found[`page: ${name}`] = await attempt(async () => {
      await mine.call('Page.navigate', { url: 'data:text/html,<body>x' }, page);
      const asked = `${LOADED}.then(() => ${expression})`;
      const params = { expression: asked, awaitPromise: true, returnByValue: true };
      const said = (await mine.call('Runtime.evaluate', params, page)) as {
        result: { value?: unknown };
        exceptionDetails?: object;
      };
      if (said.exceptionDetails) throw new Error('the page failed');
      return said.result.value;
    });
  }
  mine.close();
  other.close();
  return found;
}
