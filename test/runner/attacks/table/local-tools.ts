/**
 * Requests of a web page to tools on its visitor's machine. The page is in a Chrome without a jail,
 * and its site's name may resolve to this machine (DNS rebinding). Run by
 * test/runner/attacks/local-tools.test.ts: all attempts fail, and nothing was run or stored.
 */
import { type Attack, refused } from '../lab/attack.ts';

/** The server that the page's own name resolves to: the site's, or a tool (rebinding). */
export type LocalAttack = Attack & { from: 'site' | 'dev' | 'metrics' | 'gateway'; body: string };

const everywhere = {
  ending: refused,
  landlock: { type: 'unrun' },
  deno: { type: 'unrun' },
} as const satisfies Partial<Attack>;

/** Sent without permission (CORS): no response is readable. */
const SIMPLE = `
const simple = (url, body) => Promise.allSettled([
  fetch(url, { method: 'POST', mode: 'no-cors', body }),
  fetch(url, { method: 'POST', mode: 'no-cors', credentials: 'include', body: new Blob([body]) }),
  fetch(url, { mode: 'no-cors' }),
]);
const form = (url, enctype, name, value) => new Promise((resolve) => {
  const frame = document.createElement('iframe');
  frame.name = 'f' + Math.random();
  const form = Object.assign(document.createElement('form'),
    { action: url, method: 'post', enctype, target: frame.name });
  form.append(Object.assign(document.createElement('input'), { name, value }));
  document.body.append(frame, form);
  form.submit();
  setTimeout(() => { frame.onload = resolve; setTimeout(resolve, 2_000); });
});
const json = (url, more = {}) => fetch(url, { method: 'POST', body: '{"params":{}}',
  headers: { 'content-type': 'application/json', ...more } }).then(read);
const read = async (answer) => {
  const text = await answer.text();
  if (!answer.ok) throw new Error('status ' + answer.status);
  return text;
};
const start = (url) => fetch(url, { method: 'POST', body: '{"functionName":"hit"}',
  headers: { 'content-type': 'application/json' } }).then(read);
const socket = (url) => new Promise((resolve, reject) => {
  const socket = new WebSocket(url);
  socket.onopen = () => resolve('open');
  socket.onerror = () => reject(new Error('refused'));
});
const each = (hosts, act) =>
  all(Object.fromEntries(hosts.map((host) => [host, () => act(host)])));
`;

const attack = (from: LocalAttack['from'], name: string, body: string): LocalAttack => ({
  name,
  from,
  ...everywhere,
  body: `async (aim) => { ${SIMPLE} ${body} }`,
});
const INVOKE = `'/v1/functions/hit/invoke'`;
const RUNS = `'/console/api/runs'`;

export const localTools: readonly LocalAttack[] = [
  attack(
    'site',
    'run a function of `tabern dev` by a simple cross-site request',
    `for (const host of aim.dev) await simple('http://' + host + ${INVOKE}, '{"params":{}}');
     return {};`,
  ),
  attack(
    'site',
    'the same by a form',
    `for (const type of ['text/plain', 'multipart/form-data'])
       for (const host of aim.dev)
         await form('http://' + host + ${INVOKE}, type, '{"params":{"a":"', '"}}');
     return {};`,
  ),
  attack(
    'site',
    'the same by JSON, and read the response',
    `return all(Object.fromEntries(aim.dev.flatMap((host) => [
       ['invoke ' + host, () => json('http://' + host + ${INVOKE})],
       ['start ' + host, () => start('http://' + host + ${RUNS})],
       ['runs ' + host, () => fetch('http://' + host + ${RUNS}).then(read)],
     ])));`,
  ),
  attack(
    'dev',
    'the same by DNS rebinding to `tabern dev`',
    `return all({ json: () => json(${INVOKE}), look: () => fetch('/').then(read),
       start: () => start(${RUNS}), page: () => fetch('/console').then(read) });`,
  ),
  attack(
    'site',
    'read /metrics',
    `return each(aim.metrics, (host) => fetch('http://' + host + '/metrics').then(read));`,
  ),
  attack(
    'metrics',
    'read /metrics by DNS rebinding',
    `return all({ look: () => fetch('/metrics').then(read) });`,
  ),
  attack(
    'site',
    'create a session, a context or a webhook at the gateway without a key',
    `for (const host of aim.gateway)
       for (const noun of ['sessions', 'contexts', 'webhooks']) {
         await simple('http://' + host + '/v1/' + noun, '{}');
         await form('http://' + host + '/v1/' + noun, 'text/plain', '{"a":"', '"}');
       }
     return each(aim.gateway, (host) => json('http://' + host + '/v1/sessions'));`,
  ),
  attack(
    'site',
    'read from the gateway with a guessed key',
    `const headers = { 'x-svc-api-key': 'svc_guess', authorization: 'Bearer svc_guess' };
     return each(aim.gateway, (host) => json('http://' + host + '/v1/sessions', headers));`,
  ),
  attack(
    'gateway',
    'the same by DNS rebinding to the gateway',
    `return all({ make: () => json('/v1/sessions'),
       list: () => fetch('/v1/sessions').then(read) });`,
  ),
  attack(
    'site',
    'open WebSockets to sessions and live views without their keys',
    `const paths = ['/', '/connect', '/connect?signingKey=guess', '/view', '/view?token=guess',
       '/devtools/browser/guess', '/connect?sessionId=' + aim.sessionId];
     const urls = aim.gateway.flatMap((host) => paths.map((path) => 'ws://' + host + path));
     return each(urls, socket);`,
  ),
  attack(
    'site',
    'send requests and open WebSockets to every port of the service and its tools',
    `for (const host of aim.ports) await simple('http://' + host + '/', '{}');
     return all({
       ...Object.fromEntries(aim.ports.map((host) => ['read ' + host,
         () => fetch('http://' + host + '/json/version').then(read)])),
       ...Object.fromEntries(aim.ports.map((host) => ['ws ' + host,
         () => socket('ws://' + host + '/')])),
     });`,
  ),
];
