/**
 * Slow clients, with the timeouts of the product: thousands of clients that send a byte
 * a second are closed in time, while a good request is answered. The bounds are generous, since
 * machines are shared: node's own timeouts exceed them. test/bench/fuzz.ts measures the delays.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { until } from '../../support/poll.ts';
import { openFlood } from './flood.ts';
import { openService } from './service.ts';
import { openSlow } from './slow.ts';

const test = suite('gateway/fuzz/slow');

const HEADERS = 2_000;
const BODIES = 500;
const DRIP_MS = 1_000;
/** 12 s on a machine at rest; with node's own checks, 40 s. */
const HEADERS_MAX_MS = 30_000;
/**
 * 32 s on an idle machine, and 5 s for clients that continue to send; with node's own times, 300 s.
 */
const BODIES_MAX_MS = 90_000;

test('slow headers and slow bodies are closed at their deadline', async () => {
  await using service = await openService();
  using flood = await openFlood(service);
  const { url } = service;
  await using headers = await openSlow(url, { kind: 'headers', count: HEADERS, dripMs: DRIP_MS });
  await using bodies = await openSlow(url, { kind: 'bodies', count: BODIES, dripMs: DRIP_MS });
  assert.is(await flood.good(), 200);
  await until(() => headers.closed.length === HEADERS, 2 * HEADERS_MAX_MS);
  assert.ok(Math.max(...headers.closed) < HEADERS_MAX_MS, String(Math.max(...headers.closed)));
  assert.is(await flood.good(), 200);
  await until(() => bodies.closed.length === BODIES, 2 * BODIES_MAX_MS);
  assert.ok(Math.max(...bodies.closed) < BODIES_MAX_MS, String(Math.max(...bodies.closed)));
  assert.is(await flood.good(), 200);
});

test.run();
