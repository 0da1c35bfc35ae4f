/**
 * REST operations: every RPC with a google.api.http annotation, read from the descriptor image that
 * `npm run prepare` generates, and bound to the typed client that calls it.
 */
import { readFileSync } from 'node:fs';
import {
  createFileRegistry,
  type DescExtension,
  type DescField,
  type DescMessage,
  type DescMethod,
  type FileRegistry,
  fromBinary,
  getOption,
  type JsonValue,
  toJson,
} from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { must } from '../../proto/common/must.ts';
import { TAKES_JSON_TEXT } from '../../proto/json/json-text.ts';
import type { CallOptions } from '../../proto/rpc/local.ts';
import { type Clients, SERVICES, type ServiceName } from '../../proto/rpc/services.ts';
import { type JsonTexts, jsonTextsOf } from './json-texts.ts';

const IMAGE = new URL('../../proto/gen/image.binpb', import.meta.url);
const VERBS = ['get', 'put', 'post', 'delete', 'patch'] as const;
/**
 * Message levels of an answer; a JSON level of a Struct is three. Core limits stored values well
 * below this.
 */
const DEPTH_MAX = 1_000;

type Verb = (typeof VERBS)[number];
type HttpRule = {
  pattern: { case?: Verb; value?: string };
  body: string;
  responseBody: string;
};
type RestOptions = { status: number; closed: boolean };

/** By JSON name: a link, or a message with links; for a list, its members. */
export type Links = ReadonlyMap<string, 'link' | 'websocket' | Links>;
type LinkOptions = Record<'link' | 'websocketLink', DescExtension>;
type Options = Record<'http' | 'rest' | 'header' | 'textOf', DescExtension> & LinkOptions;

/** One RPC as a REST operation. */
export type Operation = {
  method: DescMethod;
  verb: Verb;
  /** Path template, such as `/v1/functions/{function_id}/invoke`. */
  template: string;
  /** Parameters of the template, as fields of the request. */
  pathFields: readonly string[];
  /** Fields read from headers, by header name. */
  headerFields: ReadonlyMap<string, DescField>;
  /** Code on success. */
  status: number;
  /** Has a JSON body. */
  hasBody: boolean;
  /** Refuses unknown body keys. */
  closed: boolean;
  /** JSON name of the response field that is the answer; undefined for the whole message. */
  responseField: string | undefined;
  /** Position of links in the answer; undefined without links. */
  links: Links | undefined;
  /** Positions of JSON texts in the answer and in the request. */
  texts: { answer: JsonTexts | undefined; request: JsonTexts | undefined };
};

/** Calls one unary RPC: request bytes in, response bytes out. */
export type Caller = (request: Uint8Array, options: CallOptions) => Promise<Uint8Array>;

/** The image as descriptors. */
export function readContract(): FileRegistry {
  return createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(IMAGE)));
}

/** The annotated RPCs, literal paths before parameters, so that the first match is correct. */
export function operationsOf(registry: FileRegistry): Operation[] {
  const http = must(registry.getExtension('google.api.http'), 'google.api.http');
  const rest = must(registry.getExtension('tabern.v1.rest'), 'tabern.v1.rest');
  const link = must(registry.getExtension('tabern.v1.link'), 'tabern.v1.link');
  const header = must(registry.getExtension('tabern.v1.header'), 'tabern.v1.header');
  const textOf = must(registry.getExtension('tabern.v1.json_text_of'), 'json_text_of');
  const socket = 'tabern.v1.websocket_link';
  const websocketLink = must(registry.getExtension(socket), socket);
  const options = { textOf, link, websocketLink };
  return [...registry]
    .flatMap((type) => (type.kind === 'service' ? type.methods : []))
    .flatMap((method) => operationOf(method, { ...options, http, rest, header }) ?? [])
    .sort((a, b) => (rank(a.template) < rank(b.template) ? -1 : 1));
}

/**
 * Calls of RPCs by gRPC path. Both sides use bytes, so descriptors and generated code are never
 * mixed.
 */
export function callerOf(clients: Clients, method: DescMethod): Caller {
  for (const name of Object.keys(SERVICES) as ServiceName[]) {
    for (const [key, definition] of Object.entries(SERVICES[name])) {
      if (definition.path !== pathOf(method)) continue;
      const client = clients[name] as Record<string, unknown>;
      const call = must(client[key], definition.path) as (
        request: unknown,
        options: CallOptions,
      ) => Promise<never>;
      return async (request, options) =>
        definition.responseSerialize(
          await call(definition.requestDeserialize(Buffer.from(request)), takingText(options)),
        );
    }
  }
  throw new Error(`no client for ${pathOf(method)}`);
}

function takingText(options: CallOptions): CallOptions {
  return { ...options, metadata: { ...options.metadata, ...TAKES_JSON_TEXT } };
}

/**
 * Converts response bytes to JSON: plain fields are always present, absent optional fields are not.
 */
export function render(
  output: DescMessage,
  bytes: Uint8Array,
  responseField: string | undefined,
): JsonValue {
  const message = fromBinary(output, bytes, { recursionLimit: DEPTH_MAX });
  const json = toJson(output, message, { alwaysEmitImplicit: true }) as Record<string, JsonValue>;
  return responseField === undefined ? json : must(json[responseField], responseField);
}

/** The field's name in JSON. */
export function jsonName(message: DescMessage, fieldName: string): string {
  const field = message.fields.find((one) => one.name === fieldName);
  return must(field, `${message.typeName}.${fieldName}`).jsonName;
}

function operationOf(
  method: DescMethod,
  { http, rest, header, textOf, ...linkOptions }: Options,
): Operation | undefined {
  const rule = getOption(method, http) as unknown as HttpRule;
  const { case: verb, value: template } = rule.pattern;
  if (verb === undefined || template === undefined) return undefined;
  if (rule.body !== '' && rule.body !== '*') throw new Error(`${method}: body must be "*" or none`);
  const options = getOption(method, rest) as unknown as RestOptions;
  const responseField = rule.responseBody ? jsonName(method.output, rule.responseBody) : undefined;
  return {
    method,
    verb,
    template,
    pathFields: [...template.matchAll(/\{(\w+)\}/g)].map((match) => must(match[1], 'a name')),
    headerFields: headerFieldsOf(method.input, header),
    status: options.status || 200,
    hasBody: rule.body === '*',
    closed: options.closed,
    responseField,
    links: shown(linksOf(method.output, linkOptions), responseField),
    texts: {
      answer: shown(jsonTextsOf(method.output, textOf), responseField),
      request: jsonTextsOf(method.input, textOf),
    },
  };
}

function headerFieldsOf({ fields }: DescMessage, header: DescExtension): Map<string, DescField> {
  return new Map(
    fields.flatMap((field) => {
      const name = getOption(field, header);
      return typeof name === 'string' && name !== '' ? [[name, field] as const] : [];
    }),
  );
}

/** Links of the answer, which may be one field of the response. */
function shown<T extends Links | JsonTexts>(
  fields: T | undefined,
  responseField: string | undefined,
): T | undefined {
  if (responseField === undefined || fields === undefined) return fields;
  const below = fields.get(responseField);
  return typeof below === 'object' ? (below as T) : undefined;
}

function linksOf({ fields }: DescMessage, options: LinkOptions): Links | undefined {
  const found = fields.flatMap((field): [string, 'link' | 'websocket' | Links][] => {
    if (getOption(field, options.link) === true) return [[field.jsonName, 'link']];
    if (getOption(field, options.websocketLink) === true) return [[field.jsonName, 'websocket']];
    // Messages of this package only: a Struct contains itself, and has no links.
    const isOurs = field.message?.typeName.startsWith('tabern.');
    const below = field.message && isOurs ? linksOf(field.message, options) : undefined;
    return below ? [[field.jsonName, below]] : [];
  });
  return found.length === 0 ? undefined : new Map(found);
}

/** `~` sorts after every letter: a parameter sorts after literals. */
function rank(template: string): string {
  return template.replace(/\{\w+\}/g, '~');
}

function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}
