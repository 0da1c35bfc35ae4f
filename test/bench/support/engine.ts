/** The delivery engine as in `tabern serve`, without other parts, for its benchmark. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { newId } from '../../../core/common/ids.ts';
import { sealerOf } from '../../../core/common/sealer.ts';
import { openDatabase } from '../../../core/store/sqlite/engine/open.ts';
import { later } from '../../../core/store/sqlite/engine/steps.ts';
import type { Tx } from '../../../core/store/sqlite/engine/transaction.ts';
import { openStore } from '../../../core/store/thread.ts';
import { deliveryService } from '../../../core/webhooks/deliveries.ts';
import { webhookService } from '../../../core/webhooks/webhooks.ts';
import { startDispatcher } from '../../../gateway/webhooks/sender-supervisor.ts';
import { openLog } from '../../../proto/common/log.ts';
import { must } from '../../../proto/common/must.ts';
import { DeliveryServiceService } from '../../../proto/gen/tabern/v1/deliveries.pb.ts';
import { cidrList } from '../../../proto/network/public-addresses.ts';
import { local } from '../../../proto/rpc/local.ts';
import { callerOf, emit } from '../../support/core/bare-store.ts';
import { REST } from '../../support/core/deliveries.ts';

export const TYPE = 'functions.invocations.completed';
const RECEIVER = fileURLToPath(new URL('./receiver.ts', import.meta.url));
const log = openLog({ role: 'bench', level: 'warn' });
const sealer = sealerOf(Buffer.alloc(32, 1));
const allow = cidrList(['127.0.0.0/8']);
const now = Date.now;

/** The receiver's process. */
export async function startReceiverProcess() {
  const child = fork(RECEIVER, { stdio: ['ignore', 'pipe', 'inherit', 'ipc'], execArgv: [] });
  const [line] = (await once(must(child.stdout, 'stdout'), 'data')) as [Buffer];
  const { url, ca } = JSON.parse(line.toString()) as { url: string; ca: string };
  return {
    url,
    ca,
    async [Symbol.asyncDispose]() {
      const gone = once(child, 'exit');
      child.disconnect();
      await gone;
    },
  };
}

/** A store on its thread, with full durability. */
async function openParts(dir: string) {
  const store = await openStore({
    dir,
    durability: 'full',
    onFatal: (error) => {
      throw error;
    },
  });
  return { store, webhooks: webhookService({ store, sealer, now, allow, ...REST }) };
}

/** Projects with that many webhooks each, at `${url}/<n>`; returns [project, webhook] in order. */
export async function register(dir: string, endpoints: readonly (readonly string[])[]) {
  const { store, webhooks } = await openParts(dir);
  const made: { projectId: string; webhookId: string }[] = [];
  for (const [index, ofProject] of endpoints.entries()) {
    const at = now();
    const row = { id: newId(), name: `project ${index}`, defaultTimeout: 900, concurrency: 25 };
    const { id: projectId } = await store.ensureProject({ ...row, createdAt: at, updatedAt: at });
    for (const endpoint of ofProject) {
      const caller = callerOf(projectId);
      const { webhook } = await webhooks.createWebhook({ endpoint, eventTypes: [TYPE] }, caller);
      made.push({ projectId, webhookId: must(webhook, 'webhook').id });
    }
  }
  await store.close();
  return made;
}

/** Commits that many events of the project at once; each becomes a delivery per webhook. */
export function queue(dir: string, projectId: string, count: number, at = now()): void {
  const open = openDatabase({ dir, durability: 'full' });
  const tx: Tx = { db: open.db, wake: () => {}, crashPoint: () => {}, later };
  const data = { status: 'COMPLETED', results: { text: 'x'.repeat(1_000) } };
  open.db.transaction(() => {
    for (let n = 0; n < count; n++) {
      emit(tx, { type: TYPE, resourceId: newId(), projectId, data, at });
    }
  })();
  open.close();
}

type EngineOptions = { ca: string; ratePerS: number; now?: () => number };

/**
 * The engine on that directory, sending. `ended(n)` resolves with the milliseconds from its next
 * claim until n further attempts are recorded.
 */
export async function startEngine(dir: string, options: EngineOptions) {
  const { ca, ratePerS, now = Date.now } = options;
  const { store, webhooks } = await openParts(dir);
  const service = deliveryService({ ...REST, store, sealer, log, now, wall: now, ratePerS });
  const caller = callerOf('');
  const calls = { claims: 0, reports: 0 };
  let left = 0;
  let claimedAt: number | undefined;
  let done: (ms: number) => void = () => {};
  const client = local(
    DeliveryServiceService,
    {
      async claimDeliveries(request, call) {
        const answer = await service.claimDeliveries(request, { ...caller, call });
        if (answer.claims.length > 0) claimedAt ??= performance.now();
        calls.claims += 1;
        return answer;
      },
      async reportAttempts(request, call) {
        const answer = await service.reportAttempts(request, { ...caller, call });
        calls.reports += 1;
        left -= request.reports.filter(({ outcome }) => outcome === 'OK').length;
        if (left <= 0 && claimedAt !== undefined) done(performance.now() - claimedAt);
        return answer;
      },
    },
    { onError: (error) => log.error(error) },
  );
  const rest = { client, token: 'bench', senderId: 'bench', allow, ca, log };
  const dispatcher = startDispatcher({ ...rest, attemptsEndMs: 0 });
  return {
    webhooks,
    calls,
    ended(count: number): Promise<number> {
      const { promise, resolve } = Promise.withResolvers<number>();
      left = count;
      claimedAt = undefined;
      done = resolve;
      return promise;
    },
    /** Wakes the calls that wait for a delivery. */
    async wake({ projectId, webhookId: id }: { projectId: string; webhookId: string }) {
      await webhooks.enableWebhook({ id }, callerOf(projectId));
    },
    async [Symbol.asyncDispose]() {
      await dispatcher.close();
      await store.close();
    },
  };
}
