/**
 * The service of least.ts: HTTP for its client, gRPC for its runner, a thread for its store. Argv:
 * the files of the database and of the socket.
 */
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { Worker } from 'node:worker_threads';
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from '@grpc/grpc-js';
import Router from '@koa/router';
import Koa from 'koa';
import { must } from '../../../../proto/common/must.ts';
import {
  type CompleteInvocationRequest,
  type CompleteInvocationResponse,
  InvocationWork,
  type LeaseWorkRequest,
  type LeaseWorkResponse,
  type ReportRunnerRequest,
  type ReportRunnerResponse,
  RunnerServiceService,
} from '../../../../proto/gen/tabern/v1/runners.pb.ts';
import { listen } from '../../../runner/browser/lab.ts';
import type { Row, Step } from './store.ts';

const [, , database = '', socket = ''] = process.argv;
const thread = new Worker(new URL('./store.ts', import.meta.url), { workerData: database });
const asked = new Map<number, (row: Row | undefined) => void>();
let steps = 0;
thread.on('message', ({ number, row }: { number: number; row: Row | undefined }) => {
  asked.get(number)?.(row);
  asked.delete(number);
});
function store(step: Step): Promise<Row | undefined> {
  steps += 1;
  const { promise, resolve } = Promise.withResolvers<Row | undefined>();
  asked.set(steps, resolve);
  thread.postMessage({ number: steps, step });
  return promise;
}

/** Accepted, not leased. */
const queue: string[] = [];
/** Polls of the runner that wait for one. */
const polls: ((id: string) => void)[] = [];
/** Requests that wait for an outcome, by invocation. */
const waiting = new Map<string, () => void>();

const router = new Router();
router.post('/v1/invocations', async (ctx) => {
  let body = '';
  for await (const part of ctx.req) body += part;
  const id = randomUUID();
  await store({ op: 'accept', id, params: JSON.stringify(JSON.parse(body)) });
  const poll = polls.shift();
  if (poll === undefined) queue.push(id);
  else poll(id);
  ctx.status = 202;
  ctx.body = { id, status: 'PENDING' };
});
router.get('/v1/invocations/:id', async (ctx) => {
  const { id = '' } = ctx.params;
  const over = Promise.withResolvers<void>();
  waiting.set(id, over.resolve);
  let row = await store({ op: 'get', id });
  if (row?.status !== 'COMPLETED') {
    await over.promise;
    row = await store({ op: 'get', id });
  }
  waiting.delete(id);
  ctx.body = row;
});

type Answered<Response> = sendUnaryData<Response>;
const server = new Server();
server.addService(RunnerServiceService, {
  async leaseWork(
    _call: ServerUnaryCall<LeaseWorkRequest, LeaseWorkResponse>,
    answer: Answered<LeaseWorkResponse>,
  ) {
    const next = Promise.withResolvers<string>();
    const queued = queue.shift();
    if (queued === undefined) polls.push(next.resolve);
    else next.resolve(queued);
    const [id, leaseId] = [await next.promise, randomUUID()];
    const { params } = must(await store({ op: 'lease', id, leaseId }), 'a row');
    const value = InvocationWork.fromPartial({ invocationId: id, paramsJson: params });
    answer(null, { work: [{ leaseId, item: { $case: 'invocation', value } }] });
  },
  async reportRunner(
    { request: { leaseIds } }: ServerUnaryCall<ReportRunnerRequest, ReportRunnerResponse>,
    answer: Answered<ReportRunnerResponse>,
  ) {
    for (const leaseId of leaseIds) await store({ op: 'acknowledge', leaseId });
    answer(null, { leaseIds, answers: undefined, readIds: [] });
  },
  async completeInvocation(
    { request }: ServerUnaryCall<CompleteInvocationRequest, CompleteInvocationResponse>,
    answer: Answered<CompleteInvocationResponse>,
  ) {
    const { leaseId, outcome } = request;
    const results = outcome?.$case === 'resultsJson' ? outcome.value : 'null';
    const { id } = must(await store({ op: 'complete', leaseId, results }), 'a row');
    waiting.get(id)?.();
    answer(null, { accepted: true });
  },
});
await new Promise<void>((resolve, reject) => {
  const bound = (error: Error | null) => (error ? reject(error) : resolve());
  server.bindAsync(`unix:${socket}`, ServerCredentials.createInsecure(), bound);
});

const app = new Koa();
app.use(router.routes());
process.send?.({ port: await listen(createServer(app.callback())) });
process.on('disconnect', () => process.exit(0));
