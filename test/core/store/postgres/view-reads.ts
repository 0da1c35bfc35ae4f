/** The reads of a store that both engines must answer alike, with filters and by pages. */
import type { Store } from '../../../../core/store/types.ts';
import {
  FIRST_MS,
  HOUR_MS,
  INVOCATION,
  idOf,
  type Lists,
  SESSION,
} from '../../console/projects.ts';
import { CONTEXT, type Known, LAST_MS, ROWS } from './view-rows.ts';

/** SQLite needs a value for each name. */
const NO_FILTERS = {
  status: undefined,
  text: undefined,
  functionId: undefined,
  contextId: undefined,
  region: undefined,
  labelKey: undefined,
  sessionId: undefined,
  state: undefined,
  webhookId: undefined,
  resourceId: undefined,
  eventType: undefined,
};
const NO_DOWNLOAD_FILTERS = {
  filename: undefined,
  mimeType: undefined,
  minSize: undefined,
  maxSize: undefined,
  createdAfter: undefined,
  createdBefore: undefined,
};

export type Calls = readonly [name: keyof Store, ...args: unknown[]][];

type Wanted = Lists & Known;
type Id = { id: string; projectId: string };

const anyOf = (projectId: string) => ({
  ...NO_FILTERS,
  projectId,
  from: 0,
  to: LAST_MS,
  limit: 20,
});
const pageOf = (projectId: string) => ({ projectId, before: undefined, limit: 5 });
const sessionOf = (projectId: string, n = 1): Id => ({ id: idOf(SESSION, n), projectId });
const invocationOf = (projectId: string): Id => ({ id: idOf(INVOCATION, 7), projectId });

/** One call without filters, and one with each. */
function listing(projectId: string): (name: keyof Store, ...filters: object[]) => Calls {
  const any = anyOf(projectId);
  return (name, ...filters) => [{}, ...filters].map((filter) => [name, { ...any, ...filter }]);
}

export function readsOf(lists: Lists, known: Known): Calls {
  const wanted = { ...lists, ...known };
  return [
    ...workReads(wanted),
    ...consoleReads(wanted),
    ...projectReads(wanted),
    ...objectReads(wanted),
  ];
}

function workReads({ projectId, of: { functionId }, otherProject }: Wanted): Calls {
  const list = listing(projectId);
  const session = sessionOf(projectId);
  const running = sessionOf(projectId, ROWS - 1);
  const invocation = invocationOf(projectId);
  const before = { at: FIRST_MS + 500_000, id: idOf(SESSION, 500) };
  return [
    ...list('consoleSessions', { before }, { status: 'ERROR' }, { status: 'RUNNING' }),
    ...list('consoleSessions', { text: 'order":"12' }, { region: 'us-west-2' }, { functionId }),
    ...list('consoleSessions', { contextId: CONTEXT }, { labelKey: 'ärger' }, { labelKey: 'no' }),
    ...list('consoleSessions', { metadata: { keys: ['order'], value: '7' } }, { limit: 1 }),
    ...list('consoleSessions', { status: 'ERROR', text: 'other', from: FIRST_MS + 9_000 }),
    ...[session, running, { ...session, projectId: otherProject }].flatMap(
      (wanted): Calls => [
        ['consoleSession', wanted],
        ['consoleSessionCourse', wanted],
        ['getSession', wanted],
      ],
    ),
    ['consoleRunning', { projectId, ids: [running.id, session.id, idOf(SESSION, ROWS - 2)] }],
    ...list('consoleInvocations', { status: 'FAILED' }, { functionId }, { text: 'titl' }),
    ...list('consoleInvocations', { before: { at: FIRST_MS + 9_000, id: idOf(INVOCATION, 9) } }),
    ['consoleInvocation', invocation],
    ['consoleInvocation', { ...invocation, id: idOf(INVOCATION, 1_501) }],
    ['consoleInvocationSteps', invocation],
    ...list('consoleBuilds', { status: 'COMPLETED' }, { text: 'a.t' }, { functionId }),
    ['consoleFunctions', { projectId, beforeId: '~', limit: 5 }],
    ['consoleFunctionRuns', { projectId, from: 0, before: { at: LAST_MS, id: '' }, max: 50 }],
    ['consoleFunction', { id: functionId, projectId }],
    ['consoleVersions', { projectId, functionId, beforeId: '~', limit: 5 }],
    ['consoleVersions', { projectId: otherProject, functionId, beforeId: '~', limit: 5 }],
    ['consoleLogLines', { id: idOf(INVOCATION, 3), projectId, from: 0, max: 5 }],
  ];
}

function consoleReads({ projectId, otherProject, ...known }: Wanted): Calls {
  const { events, webhookIds, of } = known;
  const { functionId } = of;
  const [webhookId = '', failing = ''] = webhookIds;
  const list = listing(projectId);
  const any = anyOf(projectId);
  const session = sessionOf(projectId);
  const invocation = invocationOf(projectId);
  const counts = (kind: string, ...groups: (string | undefined)[]): Calls =>
    groups.map((group) => ['consoleCounts', { ...any, kind, group, bucketMs: HOUR_MS }]);
  const texts = (text: string): Calls =>
    Array.from({ length: 13 }, (_, step) => {
      return ['consoleFindText', { projectId, text, step, max: 5 }];
    });
  return [
    ...list('consoleDeliveries', { state: 'delivered' }, { webhookId }, { text: 'hook-1' }),
    ...list('consoleDeliveries', { limit: 3 }, { resourceId: idOf(INVOCATION, 3) }),
    ...list('consoleDeliveries', { before: { at: FIRST_MS + 9 * HOUR_MS, id: `${events[9]}_` } }),
    ...[undefined, failing].map((id): Calls[number] => [
      'consoleWebhookHealth',
      { projectId, webhookId: id, fromDay: 0, webhooksMax: 100, backlogMax: 3 },
    ]),
    ['consoleDelivery', { projectId, webhookId: failing, id: events[0], attemptsMax: 5 }],
    ['consoleDelivery', { projectId: otherProject, webhookId, id: events[0], attemptsMax: 5 }],
    ['consoleSentEvent', { webhookId, eventId: events[0], attemptsMax: 5 }],
    ['consoleSecrets', { id: webhookId, projectId }],
    ['consoleOtherSecrets', { id: webhookId, projectId, max: 5 }],
    ['consoleOverview', { projectId, since: 0 }],
    ['consoleOverview', { projectId: 'none', since: 0 }],
    ...counts('sessions', undefined, 'status', 'reason'),
    ...counts('invocations', undefined, 'status', 'function'),
    ...counts('deliveries', undefined, 'status', 'webhook'),
    ...counts('builds', 'status'),
    ['consoleCounts', { ...any, kind: 'invocations', functionId, bucketMs: HOUR_MS }],
    ...[session.id, invocation.id, functionId, webhookId, CONTEXT, 'download', events[0]].map(
      (id): Calls[number] => ['consoleFindId', { id, projectId, max: 5 }],
    ),
    ...['0', 'titl', 'shop', 'report', 'ärger', 'order', 'hook', 'page'].flatMap(texts),
    ...list('consoleContexts', { text: 'sho' }),
    ...list('consoleDownloads', { text: 'report' }, { sessionId: session.id }),
    ...list('consoleExtensions'),
  ];
}

function projectReads({ projectId }: Wanted): Calls {
  const any = anyOf(projectId);
  return [
    ['consoleUsage', { projectId, fromDay: 0 }],
    ['consoleLimits', projectId],
    ['auditEvents', { ...any, isOfAll: true }],
    ['auditEvents', { ...any, isOfAll: true, text: 'theirs' }],
    ['auditEvents', { ...any, isOfAll: false }],
    ['auditEvents', { ...any, isOfAll: false, text: '192.0' }],
    ['allSessions', { isOpen: false, limit: 7 }],
    ['allSessions', { isOpen: true, limit: 7 }],
    ['busyQueues', 10],
    ['heldWork'],
    ['getProject', projectId],
    ['listProjects', { at: LAST_MS }],
    ['findProject', 'theirs'],
    ['projectUsage', { id: projectId, at: FIRST_MS + 100_000 }],
    ['projectStorage', projectId],
    ['listApiKeys', undefined],
    ['listApiKeys', projectId],
    ['getApiKey', 'two'],
    ['findApiKey', Buffer.from([1])],
    ['findApiKey', Buffer.from([2])],
    ['revokedKeys', 6],
    ['listProjectKeys', { projectId, revokedMax: 5, at: 9 }],
    ...[5, 6].map((n): Calls[number] => [
      'findConsoleLogin',
      { hash: Buffer.from([n]), operatorHash: Buffer.from([0]), at: 2 },
    ]),
  ];
}

function objectReads({ projectId, of: { functionId, versionId } }: Wanted): Calls {
  const page = pageOf(projectId);
  const session = sessionOf(projectId);
  const ofSession = { sessionId: session.id, projectId, offset: 0, limit: 5 };
  const downloads = { ...NO_DOWNLOAD_FILTERS, ...ofSession };
  return [
    ['listContexts', page],
    ['getContext', { id: CONTEXT, projectId }],
    ['getContextContent', { id: CONTEXT, projectId }],
    ['listBlobs', { after: '', max: 50 }],
    ['listDownloads', downloads],
    ['listDownloads', { ...downloads, minSize: 6, mimeType: 'application/pdf' }],
    ['getCertificate', { id: 'certificate', projectId }],
    ['listCertificates', { projectId, max: 5 }],
    ['listRecordings', session.id],
    ['listRecordingParts', { sessionId: session.id, projectId, pageId: 0 }],
    ['getSecretKeyPair', projectId],
    ['listSecrets', { ...page, startAt: undefined, endAt: undefined }],
    ['listSecrets', { ...page, startAt: 2, endAt: undefined }],
    ['listFunctionSecrets', { ...page, functionId, startAt: 1, endAt: 1 }],
    ['sealedSecretsOf', { functionId, projectId }],
    ['listHandoffs', { sessionId: session.id, projectId, max: 5 }],
    ['endedHandoffs', ['handoff', 'none']],
    ['listLabels', page],
    ['listSessions', { projectId, status: 'ERROR', max: 5 }],
    ['listSessions', { projectId, status: undefined, labelKeys: ['b', 'ärger'], max: 5 }],
    [
      'listSessions',
      { projectId, status: undefined, metadata: { keys: ['order'], value: '3' }, max: 5 },
    ],
    ['listFunctions', { projectId, offset: 0, limit: 5 }],
    ['newestVersion', { functionId, projectId }],
    ['getVersion', { id: versionId, projectId }],
    ['listLogs', idOf(INVOCATION, 3)],
    ['readSessionLog', { sessionId: idOf(SESSION, 2), from: 0, maxBytes: 100 }],
    ['listWebhooks', page],
    ['backlogs', 1],
    ['metrics'],
  ];
}
