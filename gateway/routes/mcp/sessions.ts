/** Tools for sessions: start, list, end, live view, and handoffs to a person. */

import { invalidField } from '../../../proto/rpc/errors.ts';
import type { JsonObject } from '../../rest/json-validation.ts';
import { line } from './short-text.ts';
import {
  choiceIn,
  flagIn,
  numberIn,
  picked,
  schemas,
  type Tool,
  text,
  uuidIn,
  WAIT,
} from './tool.ts';

/** In seconds. Ours: a forgotten session ends by itself. */
const TIMEOUT_S = 1_800;
const LIMIT = { minimum: 1, maximum: 50, default: 20 };
/** As many as GET /v1/sessions has. */
const OFFSET = { minimum: 0, maximum: 1_000, default: 0 };
const STATUSES = ['RUNNING', 'PENDING', 'COMPLETED', 'TIMED_OUT', 'ERROR', 'any'] as const;
/** Ours: more tabs are seen in the live view. */
const TABS_MAX = 20;
const URL_SHOWN_CHARS = 300;

type Session = {
  id: string;
  status: string;
  createdAt: string;
  expiresAt: string;
  endReason?: string;
  connectUrl?: string;
  labels: string[];
};
type LiveView = {
  debuggerFullscreenUrl: string;
  pages: { url: string; title: string }[];
};
type Handoff = { id: string; status: string; expiresAt: string; url?: string };

const SESSION_ID = schemas.uuid('The session.');

const start: Tool = {
  name: 'session_start',
  description:
    'Starts a browser session, which runs until session_end or its timeout. Returns its id.',
  properties: {
    timeout: { type: 'integer', description: `Seconds: 60 to 21600; ${TIMEOUT_S} when absent.` },
    contextId: schemas.uuid('A stored browser profile to load, with its logins.'),
    persist: schemas.flag('Save the profile of contextId when the session ends.'),
    viewport: {
      type: 'object',
      properties: { width: { type: 'integer' }, height: { type: 'integer' } },
      description: 'Size of the page in CSS pixels.',
    },
    proxies: schemas.flag("Use the service's proxies."),
    labels: { type: 'array', items: { type: 'string' }, description: 'Names to find it by.' },
    connectUrl: schemas.flag(
      'Also return the connectUrl, for a CDP client. It contains the key of the session: request ' +
        'it only when a program that you start will use it.',
    ),
  },
  required: [],
  annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: true },
  async run(given, { call }) {
    const isShown = flagIn(given, 'connectUrl');
    const session = await call<Session>('POST /v1/sessions', { body: settingsOf(given) });
    const { id, status, expiresAt, connectUrl } = session;
    const lines = [
      `Session ${id} is ${status}. It ends at ${expiresAt} or by session_end.`,
      'live_view has a link for a person to watch it.',
    ];
    if (isShown) {
      lines.push(
        `connectUrl: ${connectUrl}`,
        `To drive it with Playwright's tools: npx @playwright/mcp --cdp-endpoint '${connectUrl}'`,
      );
    }
    return { content: [text(lines.join('\n'))], structuredContent: { sessionId: id } };
  },
};

function settingsOf(given: JsonObject): JsonObject {
  const hasContext = (given['contextId'] ?? null) !== null;
  const persist = flagIn(given, 'persist');
  if (persist && !hasContext) throw invalidField('persist', 'needs contextId.');
  return {
    timeout: given['timeout'] ?? TIMEOUT_S,
    ...picked(given, ['proxies', 'labels']),
    keepAlive: true,
    browserSettings: {
      ...picked(given, ['viewport']),
      ...(hasContext && { context: { id: uuidIn(given, 'contextId'), persist } }),
    },
  };
}

const list: Tool = {
  name: 'session_list',
  description: 'Lists sessions of the project, newest first.',
  properties: {
    status: schemas.choice(STATUSES, 'Only sessions in this status.'),
    limit: schemas.whole(LIMIT, 'Sessions in the answer.'),
    offset: schemas.whole(OFFSET, 'Sessions to skip.'),
  },
  required: [],
  annotations: { readOnlyHint: true },
  async run(given, { call, link }) {
    const status = choiceIn(given, 'status', STATUSES);
    const limit = numberIn(given, 'limit', LIMIT);
    const offset = numberIn(given, 'offset', OFFSET);
    const query = status === 'any' ? {} : { status };
    const sessions = await call<Session[]>('GET /v1/sessions', { query });
    const shown = sessions.slice(offset, offset + limit);
    const next = offset + shown.length;
    const rest =
      next < sessions.length
        ? [`[${sessions.length - next} more: offset ${next}, or GET ${link('/v1/sessions')}]`]
        : [];
    const none = offset === 0 ? 'No session has this status.' : 'There are no more sessions.';
    const lines = shown.length === 0 ? [none] : shown.map(sessionLine);
    return { content: [text([...lines, ...rest].join('\n'))] };
  },
};

function sessionLine({ id, status, createdAt, expiresAt, endReason, labels }: Session): string {
  const until = status === 'RUNNING' || status === 'PENDING' ? `ends by ${expiresAt}` : endReason;
  const names = labels.length === 0 ? undefined : line(`labels ${labels.join(', ')}`, 200);
  const parts = [id, status, `created ${createdAt}`, until, names];
  return parts.filter((one) => one !== undefined && one !== '').join('  ');
}

const end: Tool = {
  name: 'session_end',
  description: 'Ends a session and its browser. Ending an ended session changes nothing.',
  properties: { sessionId: SESSION_ID },
  required: ['sessionId'],
  annotations: { readOnlyHint: false, destructiveHint: true },
  async run(given, { call }) {
    const id = uuidIn(given, 'sessionId');
    const body = { status: 'REQUEST_RELEASE' };
    const { status } = await call<Session>('POST /v1/sessions/{id}', { path: { id }, body });
    const state = status === 'RUNNING' ? 'ending' : status;
    return {
      content: [text(`Session ${id} is ${state}.`)],
      structuredContent: { sessionId: id },
    };
  },
};

const liveView: Tool = {
  name: 'live_view',
  description:
    'Returns a link with which a person can watch and use the browser of a running session, and ' +
    'its open tabs. The link needs no key.',
  properties: { sessionId: SESSION_ID },
  required: ['sessionId'],
  annotations: { readOnlyHint: true },
  async run(given, { call }) {
    const id = uuidIn(given, 'sessionId');
    const view = await call<LiveView>('GET /v1/sessions/{id}/debug', { path: { id } });
    const tabs = view.pages.slice(0, TABS_MAX).map(({ title, url }, at) => {
      return `${at + 1}. ${line(title, 100)} ${line(url, URL_SHOWN_CHARS)}`;
    });
    const more = view.pages.length - tabs.length;
    const lines = [`Live view: ${view.debuggerFullscreenUrl}`, 'Open tabs:', ...tabs];
    if (more > 0) lines.push(`[${more} more in the live view]`);
    return { content: [text(lines.join('\n'))] };
  },
};

const handoff: Tool = {
  name: 'handoff',
  description:
    'Asks a person to do something in the browser of a running session, such as a login or a ' +
    'captcha. Returns a link: show it to the person, then call handoff_wait.',
  properties: {
    sessionId: SESSION_ID,
    instructions: schemas.text('What the person should do: 1 to 2,000 characters.'),
    timeout: { type: 'integer', description: 'Seconds: 10 to 21600; 600 when absent.' },
  },
  required: ['sessionId', 'instructions'],
  annotations: { readOnlyHint: false, destructiveHint: false },
  async run(given, { call }) {
    const sessionId = uuidIn(given, 'sessionId');
    const body = picked(given, ['instructions', 'timeout']);
    const operation = 'POST /v1/sessions/{session_id}/handoffs';
    const made = await call<Handoff>(operation, { path: { sessionId }, body });
    const lines = [
      `Show this link to the person: ${made.url}`,
      `Handoff ${made.id} waits until ${made.expiresAt}; handoff_wait returns when it has ended.`,
    ];
    const structuredContent = { sessionId, handoffId: made.id };
    return { content: [text(lines.join('\n'))], structuredContent };
  },
};

const handoffWait: Tool = {
  name: 'handoff_wait',
  description: 'Waits until the person has finished a handoff, and returns its status.',
  properties: {
    sessionId: SESSION_ID,
    handoffId: schemas.uuid('The handoff.'),
    wait: schemas.whole(WAIT, 'Seconds to wait.'),
  },
  required: ['sessionId', 'handoffId'],
  annotations: { readOnlyHint: true },
  async run(given, { call }) {
    const path = { sessionId: uuidIn(given, 'sessionId'), id: uuidIn(given, 'handoffId') };
    const query = { wait: numberIn(given, 'wait', WAIT) };
    const operation = 'GET /v1/sessions/{session_id}/handoffs/{id}';
    const { status, expiresAt } = await call<Handoff>(operation, { path, query });
    return { content: [text(HANDOFF_SENTENCES[status]?.(expiresAt) ?? status)] };
  },
};

const HANDOFF_SENTENCES: Readonly<Record<string, (expiresAt: string) => string>> = {
  PENDING: (at) => `PENDING: the person has not finished. Call handoff_wait again, until ${at}.`,
  COMPLETED: () => 'COMPLETED: the person has finished.',
  CANCELLED: () => 'CANCELLED: the handoff was withdrawn.',
  EXPIRED: () => 'EXPIRED: its time or its session ended before the person had finished.',
};

export const SESSION_TOOLS: readonly Tool[] = [start, list, end, liveView, handoff, handoffWait];
