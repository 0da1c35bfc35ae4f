/** A core that records its requests and answers with plain resources. */
import type { CreateContextRequest } from '../../../../proto/gen/tabern/v1/contexts.pb.ts';
import type { InvokeFunctionRequest } from '../../../../proto/gen/tabern/v1/invocations.pb.ts';
import type { ListSessionsRequest } from '../../../../proto/gen/tabern/v1/sessions.pb.ts';
import type { CreateWebhookRequest } from '../../../../proto/gen/tabern/v1/webhooks.pb.ts';
import { openGateway } from '../../sessions/runner.ts';

const AT = new Date('2026-05-03T12:53:37.151Z');
/** As accepted: nothing optional is there. */
export const INVOCATION = {
  id: 'i',
  projectId: 'p',
  functionId: 'f',
  versionId: 'v',
  sessionId: 's',
  region: 'us-west-2',
  status: 'PENDING' as const,
  createdAt: AT,
  updatedAt: AT,
  startedAt: AT,
  endedAt: undefined,
  expiresAt: AT,
  params: {},
  results: undefined,
  cause: undefined,
  trigger: undefined,
};

export async function openRecording() {
  const seen: {
    contexts: CreateContextRequest[];
    invocations: InvokeFunctionRequest[];
    sessions: ListSessionsRequest[];
    webhooks: CreateWebhookRequest[];
    paths: unknown[];
  } = { contexts: [], invocations: [], sessions: [], webhooks: [], paths: [] };
  const gateway = await openGateway({
    contexts: {
      async createContext(request) {
        seen.contexts.push(request);
        return {
          id: 'c',
          publicKey: 'k',
          cipherAlgorithm: 'AES-256-CBC',
          initializationVectorSize: 16,
          uploadUrl: '/v1/contexts/c/content?x=y',
        };
      },
      async listContexts(request) {
        seen.paths.push(request);
        return { data: [], limit: request.limit ?? 20, nextCursor: null };
      },
      async deleteContext() {
        return {};
      },
      async updateContext({ id }) {
        const rest = { cipherAlgorithm: '', initializationVectorSize: 0, uploadUrl: '/' };
        return { id, publicKey: '', ...rest };
      },
    },
    functions: {
      async listBuilds(request) {
        seen.paths.push(['listBuilds', request]);
        return { data: [], total: 0 };
      },
      async getFunction({ id }) {
        seen.paths.push(['getFunction', id]);
        return {
          function: {
            id,
            projectId: 'p',
            name: 'n',
            createdAt: AT,
            updatedAt: AT,
            createdVersion: undefined,
          },
        };
      },
    },
    invocations: {
      async invokeFunction(request) {
        seen.invocations.push(request);
        const { paramsJson = '{}' } = request;
        return { invocation: { ...INVOCATION, params: undefined, paramsJson } };
      },
      async getInvocation({ id }) {
        const results =
          id === 'null' ? null : id === 'none' ? undefined : { list: [1.5, null, 'x'] };
        return { invocation: { ...INVOCATION, id, status: 'COMPLETED', results } };
      },
    },
    sessions: {
      async listSessions(request) {
        seen.sessions.push(request);
        return { sessions: [] };
      },
      async updateSession({ id }) {
        seen.paths.push(id);
        return { session: undefined };
      },
    },
    webhooks: {
      async createWebhook(request) {
        seen.webhooks.push(request);
        return { webhook: undefined };
      },
    },
  });
  return { gateway, seen };
}
