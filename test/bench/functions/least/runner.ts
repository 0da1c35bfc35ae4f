/** The runner of least.ts: leases, acknowledges, runs and reports. Argv: the service's socket. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Client, credentials } from '@grpc/grpc-js';
import {
  CompleteInvocationRequest,
  type InvocationWork,
  LeaseWorkRequest,
  ReportRunnerRequest,
  RunnerServiceService,
} from '../../../../proto/gen/tabern/v1/runners.pb.ts';

/** As many as a runner's default. */
const PLACES = 4;

const [, , socket = ''] = process.argv;
const core = new Client(`unix:${socket}`, credentials.createInsecure());
const host = fork(new URL('./host.ts', import.meta.url), [], { serialization: 'advanced' });
const running = new Map<string, (results: string) => void>();
await once(host, 'message');
host.on('message', ({ id, results }: { id: string; results: string }) => {
  running.get(id)?.(results);
  running.delete(id);
});
process.on('disconnect', () => {
  host.disconnect();
  process.exit(0);
});
process.send?.({});
await Promise.all(Array.from({ length: PLACES }, leaseAll));

async function leaseAll(): Promise<never> {
  const { leaseWork, reportRunner, completeInvocation } = RunnerServiceService;
  for (;;) {
    const { work } = await called(leaseWork, LeaseWorkRequest.fromPartial({ max: 1 }));
    for (const { leaseId, item } of work) {
      if (item?.$case !== 'invocation') throw new Error('not an invocation');
      await called(reportRunner, ReportRunnerRequest.fromPartial({ leaseIds: [leaseId] }));
      const value = await handled(item.value);
      const outcome = { $case: 'resultsJson', value } as const;
      await called(completeInvocation, CompleteInvocationRequest.fromPartial({ leaseId, outcome }));
    }
  }
}

function handled({ invocationId: id, paramsJson }: InvocationWork): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  running.set(id, resolve);
  host.send({ id, paramsJson });
  return promise;
}

type Unary<Request, Response> = {
  path: string;
  requestSerialize: (value: Request) => Buffer;
  responseDeserialize: (value: Buffer) => Response;
};

function called<Request, Response>(
  { path, requestSerialize, responseDeserialize }: Unary<Request, Response>,
  request: Request,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    core.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, (error, answer) => {
      if (error || !answer) reject(error ?? new Error('no answer'));
      else resolve(answer);
    });
  });
}
