/**
 * One Chrome behind its relay in a separate process, for relay.ts. The argument `logs` keeps the
 * protocol log as a runner does, for a core that accepts everything. Prints its address; ends when
 * its parent disconnects.
 */
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sessionLogs } from '../../../runner/sessions/log/log-shipper.ts';
import { openLogSpace } from '../../../runner/sessions/log/spool.ts';
import { openRelay } from '../../../runner/sessions/relay/relay.ts';
import { launchOne, listen, log } from '../../runner/browser/lab.ts';
import { testLease, testRunner } from '../../support/runner/lease.ts';

const runDir = mkdtempSync(join(tmpdir(), 'tabern-bench-'));
const allow = ['127.0.0.0/8'];
const chrome = await launchOne({ runDir, allow, ignoreCertificateErrors: true });
const taken = { entries: 0, bytes: 0, compressed: 0 };
const lease = testLease('', {
  async append(entry) {
    if (entry.kind !== 'chunk') return false;
    taken.entries += entry.chunk.count;
    taken.bytes += entry.chunk.size;
    taken.compressed += entry.chunk.entries.length;
    return false;
  },
});
const runner = testRunner({ log, runDir });
const own = { sessionId: crypto.randomUUID(), projectId: 'bench' };
const logs = sessionLogs(own, { runner, lease, space: openLogSpace() });
const part = process.argv[2] === 'logs' ? await logs.open(chrome) : undefined;
const relay = openRelay(chrome, { log, recorder: part?.recorder });
const relayServer = createServer().on('upgrade', relay.serve);
process.send?.({ url: `ws://127.0.0.1:${await listen(relayServer)}/` });

// its CPU time so far, and the size of the log
process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send?.({ cpuMs: (user + system) / 1_000, ...taken });
});
process.on('disconnect', async () => {
  relay.close(1001, 'the bench is over');
  await part?.closeLast?.();
  await chrome.close();
  await rm(runDir, { recursive: true, force: true });
  process.exit(0);
});
