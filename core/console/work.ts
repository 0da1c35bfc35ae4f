/** Invocations and builds as rows of the console. */
import type {
  ConsoleBuild,
  ConsoleInvocation,
  ConsoleServiceService,
} from '../../proto/gen/tabern/v1/console.pb.ts';
import { dateOf } from '../api/answers.ts';
import { orNotFound } from '../api/checks.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import { pathId } from '../common/ids.ts';
import { triggerToProto } from '../functions/invocation-view.ts';
import type { ConsoleBuildRow, ConsoleInvocationRow } from '../store/types/console.ts';
import type { InvocationStep } from '../store/types/invocations.ts';
import type { Store } from '../store/types.ts';
import { cursorAfter, listOf, optionalId } from './filters.ts';

type Handlers = Service<typeof ConsoleServiceService, ProjectCaller>;

/** Source: console.proto. */
const MESSAGE_SHOWN_CHARS = 512;

export function consoleWork(
  store: Store,
): Pick<Handlers, 'listInvocations' | 'getInvocation' | 'listInvocationSteps' | 'listBuilds'> {
  return {
    async listInvocations({ status, functionId, ...page }, { projectId }) {
      const owner = { projectId, list: 'invocations' };
      const found = await store.consoleInvocations({
        ...listOf(owner, page),
        status,
        functionId: optionalId('functionId', functionId),
      });
      return { invocations: found.rows.map(toInvocation), nextCursor: cursorAfter(owner, found) };
    },

    async getInvocation({ id: text }, { projectId }) {
      const id = pathId('id', text);
      const row = await store.consoleInvocation({ id, projectId });
      return { invocation: toInvocation(orNotFound(row, 'Invocation', id)) };
    },

    async listInvocationSteps({ id: text }, { projectId }) {
      const id = pathId('id', text);
      const row = await store.consoleInvocationSteps({ id, projectId });
      const { steps } = orNotFound(row, 'Invocation', id);
      return { steps: steps === null ? [] : stepsOf(JSON.parse(steps)) };
    },

    async listBuilds({ status, functionId, ...page }, { projectId }) {
      const owner = { projectId, list: 'builds' };
      const found = await store.consoleBuilds({
        ...listOf(owner, page),
        status,
        functionId: optionalId('functionId', functionId),
      });
      return { builds: found.rows.map(toBuild), nextCursor: cursorAfter(owner, found) };
    },
  };
}

function toInvocation(found: ConsoleInvocationRow): ConsoleInvocation {
  const { cause, scheduleId, scheduledFor, ...row } = found;
  return {
    ...row,
    trigger: triggerToProto({ scheduleId, scheduledFor }),
    createdAt: new Date(row.createdAt),
    startedAt: dateOf(row.startedAt),
    endedAt: dateOf(row.endedAt),
    expiresAt: new Date(row.expiresAt),
    ...causeOf(cause),
  };
}

function stepsOf(steps: readonly InvocationStep[]) {
  return steps.map(([name, startMs, endMs, failed]) => {
    return { name, startMs, endMs, failed: failed === 1 };
  });
}

function toBuild({ cause, ...row }: ConsoleBuildRow): ConsoleBuild {
  return {
    ...row,
    createdAt: new Date(row.createdAt),
    startedAt: dateOf(row.startedAt),
    endedAt: dateOf(row.endedAt),
    ...causeOf(cause),
  };
}

/** The code and the beginning of the message; a stack and a long message are not of a list. */
export function causeOf(cause: string | null) {
  if (cause === null) return { causeCode: undefined, causeMessage: undefined };
  const { code, message } = JSON.parse(cause) as { code: string; message?: string };
  return { causeCode: code, causeMessage: message?.slice(0, MESSAGE_SHOWN_CHARS) };
}
