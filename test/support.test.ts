/**
 * The tools of the tests themselves: a receiver that verifies, a site that responds, a leftover
 * that is found.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { get } from 'node:https';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { testClock } from './support/clock.ts';
import { errorOf, faultOf } from './support/fault.ts';
import { until } from './support/poll.ts';
import { freePort } from './support/port.ts';
import { startReceiver } from './support/servers/receiver.ts';
import { startSite } from './support/servers/site.ts';
import {
  familyOf,
  isRunning,
  listeningPorts,
  processesNaming,
} from './support/service/processes.ts';
import { tempDirectory } from './support/temp.ts';

const support = suite('support');

support('the receiver is trusted through its CA only, and keeps its requests', async () => {
  await using receiver = await startReceiver();
  receiver.script(503);
  const ca = readFileSync(receiver.caPath);
  assert.is(await statusOf(`${receiver.url}/a?b=1`, ca), 503);
  assert.is(await statusOf(`${receiver.url}/c`, ca), 200);
  assert.match(String(await errorOf(statusOf(receiver.url))), /certificate/);
  assert.equal(
    receiver.requests.map(({ path }) => path),
    ['/a?b=1', '/c'],
  );
  assert.is((await receiver.received(({ path }) => path === '/c')).method, 'GET');
});

support('the site has titles, links and a redirect, and responds 404 to other paths', async () => {
  await using site = await startSite();
  const moved = await fetch(`${site.url}/moved`);
  assert.is(moved.url, `${site.url}/rooms`);
  assert.match(await moved.text(), /<title>Rooms<\/title>.*href="\/rooms\/1"/);
  assert.is((await fetch(`${site.url}/nowhere`)).status, 404);
  assert.is((await fetch(`${site.url}/slow?ms=1`)).status, 200);
  assert.equal(site.visits, ['/moved', '/rooms', '/nowhere', '/slow']);
});

support('a process is found by a text in its environment, and not after its end', async () => {
  await using dir = tempDirectory();
  const env = { PLACE: dir.path };
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)'], { env });
  const pid = child.pid ?? 0;
  await until(() => processesNaming(dir.path).some((one) => one.pid === pid));
  assert.ok(familyOf(process.pid).some((one) => one.pid === pid));
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
  assert.not(isRunning(pid));
  assert.equal(processesNaming(dir.path), []);
});

support('a port with a listener is found, a free port is not', async () => {
  await using site = await startSite();
  assert.ok(listeningPorts().has(Number(new URL(site.url).port)));
  assert.not(listeningPorts().has(await freePort()));
});

support('faultOf accepts only a Fault', async () => {
  assert.match(String(await errorOf(faultOf(Promise.resolve(1)))), /resolved/);
  assert.match(String(await errorOf(faultOf(Promise.reject(new Error('x'))))), /not a Fault/);
});

support('until throws at its limit, and does not hide an error of its condition', async () => {
  assert.is(await until(() => 0, 50), 0);
  assert.match(String(await errorOf(until(() => false, 30))), /not within 30 ms/);
  const broken = until(() => {
    throw new Error('broken condition');
  }, 30);
  assert.match(String(await errorOf(broken)), /broken condition/);
});

support('the clock moves only by advance', () => {
  const clock = testClock(1_000);
  clock.advance(5);
  assert.is(clock.now(), 1_005);
  assert.throws(() => clock.advance(-1), /set back/);
});

support.run();

async function statusOf(url: string, ca?: Buffer): Promise<number | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  const request = get(url, ca === undefined ? {} : { ca }, (response) => {
    response.resume();
    resolve(response.statusCode);
  });
  request.once('error', reject);
  return promise;
}
