/** Tools for published functions: list, invoke, read the outcome and the log. */
import { invalidField } from '../../../proto/rpc/errors.ts';
import type { JsonObject } from '../../rest/json-validation.ts';
import { firstPart, lastPart, line } from './short-text.ts';
import {
  isUuid,
  numberIn,
  picked,
  type Service,
  schemas,
  type Tool,
  text,
  textIn,
  uuidIn,
  WAIT,
} from './tool.ts';

const LIMIT = { minimum: 1, maximum: 50, default: 20 };
const OFFSET = { minimum: 0, maximum: 1_000_000, default: 0 };
/** A name is searched in this many of the newest functions. Ours. */
const NAMED_MAX = 1_000;
const PAGE = 100;
const MESSAGE_SHOWN_CHARS = 2_000;

type Published = { id: string; name: string; updatedAt: string };
type Functions = { data: Published[]; total: number };
type Versions = { data: { id: string; userParamsSchema?: object }[] };
type Invocation = {
  id: string;
  status: string;
  sessionId: string;
  results?: unknown;
  resultsJson?: string;
  cause?: { code: string; name?: string; message?: string };
};
type Logs = { logs: { message: string; timestamp: number; level?: string }[] };

const list: Tool = {
  name: 'function_list',
  description:
    'Lists published functions, last published first. With function: one of them, with the JSON ' +
    'schema of its params.',
  properties: {
    function: schemas.text('Id or name of one function.'),
    limit: schemas.whole(LIMIT, 'Functions in the answer.'),
    offset: schemas.whole(OFFSET, 'Functions to skip.'),
  },
  required: [],
  annotations: { readOnlyHint: true },
  async run(given, service) {
    if (given['function'] !== undefined)
      return { content: [text(await detailsOf(given, service))] };
    const query = {
      limit: numberIn(given, 'limit', LIMIT),
      offset: numberIn(given, 'offset', OFFSET),
    };
    const { data, total } = await service.call<Functions>('GET /v1/functions', { query });
    const lines = data.map(({ id, name, updatedAt }) => `${name}  ${id}  published ${updatedAt}`);
    const next = query.offset + data.length;
    if (data.length === 0) lines.push('There are no functions.');
    else if (next < total) lines.push(`[${total - next} more: offset ${next}]`);
    return { content: [text(lines.join('\n'))] };
  },
};

async function detailsOf(given: JsonObject, service: Service): Promise<string> {
  const functionId = await functionIdOf(given, service);
  const [published, versions] = await Promise.all([
    service.call<Published>('GET /v1/functions/{id}', { path: { id: functionId } }),
    service.call<Versions>('GET /v1/functions/{function_id}/versions', {
      path: { functionId },
      query: { limit: 1 },
    }),
  ]);
  const schema = versions.data[0]?.userParamsSchema;
  const link = service.link(`/v1/functions/${functionId}/versions`);
  const params =
    schema === undefined
      ? 'It has no schema of params: any object is accepted.'
      : `params: ${firstPart(JSON.stringify(schema), { rest: () => `All of it: GET ${link}` })}`;
  return `${published.name}  ${published.id}  published ${published.updatedAt}\n${params}`;
}

const invoke: Tool = {
  name: 'function_invoke',
  description:
    'Runs a published function in a browser session of its own, and returns its result. If it ' +
    'has not ended after the wait, function_logs with wait returns the outcome.',
  properties: {
    function: schemas.text('Id or name.'),
    params: {
      type: 'object',
      description: 'Passed to the function. function_list has the schema.',
    },
    wait: schemas.whole(WAIT, 'Seconds to wait for the result.'),
  },
  required: ['function'],
  annotations: { readOnlyHint: false, openWorldHint: true },
  async run(given, service) {
    const wait = numberIn(given, 'wait', WAIT);
    const functionId = await functionIdOf(given, service);
    const { id } = await service.call<Invocation>('POST /v1/functions/{function_id}/invoke', {
      path: { functionId },
      body: picked(given, ['params']),
    });
    const structuredContent = { invocationId: id };
    return { content: [text(await outcomeOf(id, wait, service))], structuredContent };
  },
};

const logs: Tool = {
  name: 'function_logs',
  description: 'Returns the outcome and the log of an invocation, also while it runs.',
  properties: {
    invocationId: schemas.uuid('From function_invoke.'),
    wait: schemas.whole({ ...WAIT, default: 0 }, 'Seconds to wait for the end.'),
  },
  required: ['invocationId'],
  annotations: { readOnlyHint: true },
  async run(given, service) {
    const id = uuidIn(given, 'invocationId');
    const wait = numberIn(given, 'wait', { ...WAIT, default: 0 });
    const outcome = await outcomeOf(id, wait, service);
    const path = `/v1/functions/invocations/${id}/logs`;
    const read = await service.call<Logs>('GET /v1/functions/invocations/{id}/logs', {
      path: { id },
    });
    const lines = read.logs.map(({ timestamp, level = 'log', message }) => {
      return `${new Date(timestamp).toISOString()} ${level} ${message}`;
    });
    const log = lastPart(lines.join('\n'), `All of it: GET ${service.link(path)}`);
    return { content: [text(`${outcome}\n\n${log === '' ? 'The log is empty.' : log}`)] };
  },
};

async function outcomeOf(id: string, wait: number, { call, link }: Service): Promise<string> {
  const operation = 'GET /v1/functions/invocations/{id}';
  const invocation = await call<Invocation>(operation, { path: { id }, query: { wait } });
  const { status, results, resultsJson, cause, sessionId } = invocation;
  const title = `Invocation ${id} is ${status}. Its session is ${sessionId}.`;
  if (status === 'FAILED') {
    const parts = [cause?.code, cause?.name, cause?.message].filter((one) => one !== undefined);
    return `${title}\n${line(parts.join(': '), MESSAGE_SHOWN_CHARS)}`;
  }
  if (status !== 'COMPLETED') return `${title}\nCall function_logs with wait for its outcome.`;
  const json = resultsJson ?? (results === undefined ? undefined : JSON.stringify(results));
  if (json === undefined) return `${title}\nIt returned nothing.`;
  const rest = () => `All of it: GET ${link(`/v1/functions/invocations/${id}`)}`;
  return `${title}\n${firstPart(json, { rest })}`;
}

/** A UUID is always an id, as in the commands. */
async function functionIdOf(given: JsonObject, { call }: Service): Promise<string> {
  const wanted = textIn(given, 'function');
  if (isUuid(wanted)) return wanted;
  for (let offset = 0; offset < NAMED_MAX; offset += PAGE) {
    const query = { offset, limit: PAGE };
    const { data } = await call<Functions>('GET /v1/functions', { query });
    const found = data.find(({ name }) => name === wanted);
    if (found !== undefined) return found.id;
    if (data.length < PAGE) break;
  }
  throw invalidField(
    'function',
    'is not the id or name of a function. function_list has the names.',
  );
}

export const FUNCTION_TOOLS: readonly Tool[] = [list, invoke, logs];
