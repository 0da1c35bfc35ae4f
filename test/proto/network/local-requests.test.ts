/** Which requests a server without a key answers on a person's own machine. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { foreignRequest, type LocalServer } from '../../../proto/network/local-requests.ts';

const test = suite('proto/network/local-requests');
const LOOPBACK: LocalServer = { boundTo: '127.0.0.1' };
const ALL: LocalServer = { boundTo: '0.0.0.0' };
const NETWORK: LocalServer = { boundTo: '0.0.0.0', takesAnyName: true };

/** Server, headers, and whether it answers. */
const CASES: [LocalServer, Record<string, string>, boolean][] = [
  [LOOPBACK, { host: '127.0.0.1:1' }, true],
  [LOOPBACK, { host: 'localhost:1' }, true],
  [LOOPBACK, { host: 'LOCALHOST' }, true],
  [LOOPBACK, { host: 'dev.localhost:1' }, true],
  [LOOPBACK, { host: '[::1]:1' }, true],
  [LOOPBACK, { host: 'evil.test:1' }, false],
  [LOOPBACK, { host: 'evil.test' }, false],
  [LOOPBACK, { host: '127.0.0.1.evil.test:1' }, false],
  [LOOPBACK, { host: 'localhost.evil.test' }, false],
  [LOOPBACK, { host: '10.0.0.7:1' }, false],
  [LOOPBACK, { host: '' }, false],
  [LOOPBACK, {}, false],
  [LOOPBACK, { host: 'localhost:1', origin: 'http://localhost:1' }, true],
  [LOOPBACK, { host: 'localhost:1', origin: 'http://localhost:2' }, false],
  [LOOPBACK, { host: 'localhost:1', origin: 'https://evil.test' }, false],
  [LOOPBACK, { host: 'localhost:1', origin: 'null' }, false],
  [LOOPBACK, { host: 'localhost:1', origin: '' }, false],
  [LOOPBACK, { host: 'localhost:1', 'sec-fetch-site': 'same-origin' }, true],
  [LOOPBACK, { host: 'localhost:1', 'sec-fetch-site': 'none' }, true],
  [LOOPBACK, { host: 'localhost:1', 'sec-fetch-site': 'same-site' }, false],
  [LOOPBACK, { host: 'localhost:1', 'sec-fetch-site': 'cross-site' }, false],
  [LOOPBACK, { host: 'localhost:1', 'sec-fetch-site': 'odd' }, false],
  [ALL, { host: '10.0.0.7:1' }, true],
  [ALL, { host: '[fd00::7]:1' }, true],
  [ALL, { host: 'devbox:1' }, true],
  [ALL, { host: 'evil.test:1' }, false],
  [ALL, { host: 'evil.test:1', origin: 'http://evil.test:1' }, false],
  [{ boundTo: 'box.corp.test' }, { host: 'box.corp.test:1' }, true],
  [{ boundTo: 'box.corp.test' }, { host: 'evil.test:1' }, false],
  [NETWORK, { host: 'tabern.monitoring.svc.cluster.local:9464' }, true],
  [NETWORK, { host: 'a.test', origin: 'https://evil.test' }, false],
  [NETWORK, { host: 'a.test', 'sec-fetch-site': 'cross-site' }, false],
  [{ ...NETWORK, boundTo: '127.0.0.1' }, { host: 'evil.test' }, false],
];

for (const [server, headers, isAnswered] of CASES) {
  const verdict = isAnswered ? 'is answered' : 'is refused';
  test(`${JSON.stringify(headers)} on ${server.boundTo} ${verdict}`, () => {
    assert.is(foreignRequest(headers, server) === undefined, isAnswered);
  });
}

test.run();
