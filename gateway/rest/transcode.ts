/**
 * Transcodes REST to gRPC: each annotated RPC is one route. Path, query, headers and body are read
 * strictly into the request message; the response is printed as protobuf's JSON. Contains no rules
 * of the domain.
 */
import type { IncomingMessage } from 'node:http';
import type { DescField, DescMethod, JsonValue } from '@bufbuild/protobuf';
import type { RouterContext, RouterMiddleware } from '@koa/router';
import { must } from '../../proto/common/must.ts';
import { ignoredMetadata } from '../../proto/json/ignored-members.ts';
import { Fault, invalidField } from '../../proto/rpc/errors.ts';
import type { CallOptions } from '../../proto/rpc/local.ts';
import type { Clients } from '../../proto/rpc/services.ts';
import type { State } from '../http/auth.ts';
import { baseUrlOf } from '../http/base-url.ts';
import { readJson } from '../http/body.ts';
import { waiting } from '../http/long-poll.ts';
import { withTexts, written } from './json-texts.ts';
import { checkBody, checkText, type JsonObject } from './json-validation.ts';
import { absoluteLinks } from './links.ts';
import { messageOf } from './messages.ts';
import { callerOf, jsonName, type Operation, render } from './operations.ts';

/** An unknown parameter's name is truncated to this in the error. */
const NAME_SHOWN_CHARS = 64;

export type TranscodeDeps = {
  clients: Clients;
  publicUrl: string | undefined;
  /** Aborts when the gateway closes. */
  draining: AbortSignal;
};

/** `/v1/contexts/{id}` in @koa/router's syntax. */
export function routeOf(template: string): string {
  return template.replace(/\{(\w+)\}/g, ':$1');
}

/** The handler of one annotated RPC. */
export function transcoder(operation: Operation, deps: TranscodeDeps): RouterMiddleware<State> {
  const { method, status, texts, closed } = operation;
  const send = sender(operation, deps);
  const queryFields = queryFieldsOf(operation);
  return async (ctx) => {
    const query = readQuery(new URLSearchParams(ctx.querystring), queryFields);
    const ignored: string[] = [];
    const body = operation.hasBody
      ? checkBody(method.input, await readJson(ctx.req, ctx.state), closed, ignored)
      : {};
    const given = { ...query, ...readHeaders(operation, body, ctx.req) };
    const path = readPath(operation, ctx);
    const options = must(ctx.state.call, 'a key');
    const json = await send({ body, ignored, given, path }, { options, baseUrl: baseUrlOf(ctx) });
    ctx.status = status;
    if (status === 204) return;
    ctx.state.answer = json;
    ctx.type = 'json';
    ctx.body = written(json, texts.answer);
  };
}

/** A checked request: its body, its query and headers, its path; the body's dropped keys. */
export type Parts = { body: JsonObject; given: JsonObject; path: JsonObject; ignored: string[] };
/** `baseUrl`: of links in the answer, without TABERN_PUBLIC_URL. */
export type Sending = { options(timeoutMs?: number): CallOptions; baseUrl: string };

/** Calls one annotated RPC. The answer is JSON with absolute links; texts are still texts. */
export function sender(operation: Operation, { clients, publicUrl, draining }: TranscodeDeps) {
  const { method, responseField, links, texts, closed } = operation;
  const call = callerOf(clients, method);
  return async (parts: Parts, { options: callOptions, baseUrl }: Sending): Promise<JsonValue> => {
    const { body, given, path, ignored } = parts;
    const request = { ...withTexts(body, texts.request, closed), ...given, ...path };
    const send = (wanted: JsonObject, options: CallOptions) => {
      const metadata = { ...options.metadata, ...ignoredMetadata(ignored) };
      return call(messageOf(method.input, wanted), { ...options, metadata });
    };
    const options = (timeoutMs = operation.timeoutMs) => callOptions(timeoutMs);
    const answer = await waiting(request, { send, options, draining }).catch((error: unknown) => {
      throw 'idempotencyKey' in given ? repeatable(error) : error;
    });
    const json = operation.status === 204 ? {} : render(method.output, answer, responseField);
    return links ? absoluteLinks(json, links, publicUrl ?? baseUrl) : json;
  };
}

/** An idempotency key makes a retry safe. Source: proto/spec/errors.md 10. */
function repeatable(error: unknown): unknown {
  if (!(error instanceof Fault)) return error;
  if (error.reason !== 'OUTCOME_UNKNOWN' && error.reason !== 'DEADLINE') return error;
  const message = 'The outcome is unknown; repeat the request with the same Idempotency-Key.';
  return new Fault(error.reason, message, { ...error.facts, isRepeatable: 'true' }, error);
}

/** Fields that the query may contain: those that neither path nor body contain. */
export function queryFieldsOf(operation: Operation): DescField[] {
  return operation.hasBody ? [] : otherFieldsOf(operation);
}

/** Fields of the request that are neither in the path nor in headers. */
export function otherFieldsOf({ method, pathFields, headerFields }: Operation): DescField[] {
  const inHeaders = [...headerFields.values()];
  return method.input.fields.filter(
    (field) => !pathFields.includes(field.name) && !inHeaders.includes(field),
  );
}

/** Each parameter at most once unless its field is a list, and only known ones. */
export function readQuery(query: URLSearchParams, fields: readonly DescField[]): JsonObject {
  const read: JsonObject = {};
  for (const [name, text] of query) {
    const field = fields.find((one) => one.jsonName === name);
    if (field === undefined) {
      throw invalidField(name.slice(0, NAME_SHOWN_CHARS), 'is not a known query parameter.');
    }
    const value = checkText(field, text);
    if (field.fieldKind === 'list') {
      const items = read[name] ?? [];
      if (Array.isArray(items)) read[name] = [...items, value];
      continue;
    }
    if (Object.hasOwn(read, name)) throw invalidField(name, 'must be given once.');
    read[name] = value;
  }
  return read;
}

/** Each header at most once; the body may not contain fields of headers. */
function readHeaders(
  { headerFields }: Operation,
  body: JsonObject,
  { headersDistinct }: IncomingMessage,
): JsonObject {
  const read: JsonObject = {};
  for (const [header, field] of headerFields) {
    const name = field.jsonName;
    if (Object.hasOwn(body, name)) throw invalidField(name, `must be given as header ${header}.`);
    const [text, ...more] = headersDistinct[header.toLowerCase()] ?? [];
    if (more.length > 0) throw invalidField(header, 'must be given once.');
    if (text !== undefined) read[name] = checkText(field, text);
  }
  return read;
}

function readPath(
  { method, pathFields }: { method: DescMethod; pathFields: readonly string[] },
  ctx: Pick<RouterContext, 'params'>,
): JsonObject {
  return Object.fromEntries(
    pathFields.map((name) => {
      const text = must(ctx.params[name], `path parameter ${name}`);
      return [jsonName(method.input, name), text];
    }),
  );
}
