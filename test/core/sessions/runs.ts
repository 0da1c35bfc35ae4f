/** Sessions that users start, and a runner that takes them as a real one does. */

import type { Env } from '../../../proto/common/env.ts';
import { must } from '../../../proto/common/must.ts';
import type {
  CompleteSessionRequest,
  SessionWork,
} from '../../../proto/gen/tabern/v1/runners.pb.ts';
import { CreateSessionRequest, type Session } from '../../../proto/gen/tabern/v1/sessions.pb.ts';
import { boot } from '../boot.ts';

export type Taken = SessionWork & { leaseId: string };

/** A core, and the short way through a session's life. */
export async function openSessions(env: Env = {}) {
  const app = await boot(env);
  const { clients, clock, asProject, asRunner } = app;
  const create = async (body: Partial<CreateSessionRequest> = {}, more = {}): Promise<Session> => {
    const request = CreateSessionRequest.fromPartial(body as object);
    const options = { ...asProject, ...more };
    const { session } = await clients.sessions.createSession(request, options);
    return must(session, 'session');
  };
  const take = async (): Promise<Taken> => {
    const { leaseId, item } = must((await app.lease('SESSION', 25_000))[0], 'work');
    if (item?.$case !== 'session') throw new Error('no session');
    return { ...item.value, leaseId };
  };
  const begin = async (leaseId: string, startMs = clock.now()) =>
    (await clients.runners.startSession({ leaseId, startMs }, asRunner)).accepted;
  return {
    ...app,
    create,
    take,
    begin,
    /** One that runs. */
    async run(body?: Partial<CreateSessionRequest>) {
      const creating = create(body);
      const work = await take();
      await begin(work.leaseId);
      return { session: await creating, work, leaseId: work.leaseId };
    },
    async end(
      leaseId: string,
      end: CompleteSessionRequest['end'] = 'COMPLETED',
      reason = 'The last client has left',
    ) {
      const request = { leaseId, end, reason, proxyBytes: 0 };
      return (await clients.runners.completeSession(request, asRunner)).accepted;
    },
    async read(id: string): Promise<Session> {
      const { session } = await clients.sessions.getSession({ id }, asProject);
      return must(session, 'session');
    },
    async release(id: string): Promise<Session> {
      const request = { id, status: 'REQUEST_RELEASE' };
      const { session } = await clients.sessions.updateSession(request, asProject);
      return must(session, 'session');
    },
  };
}
