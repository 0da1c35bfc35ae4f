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
  hasOption,
  type JsonValue,
} from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { must } from '../../proto/common/must.ts';
import { TAKES_JSON_TEXT } from '../../proto/json/json-text.ts';
import type { CallOptions } from '../../proto/rpc/local.ts';
import { type Clients, SERVICES, type ServiceName } from '../../proto/rpc/services.ts';
import type { JsonTexts } from './json-texts.ts';
import type { Links } from './links.ts';
import { jsonOf, type Marks, type Message, marksOf } from './messages.ts';

const GENERATED = new URL('../../proto/gen/', import.meta.url);

type Verb = 'get' | 'put' | 'post' | 'delete' | 'patch';
type HttpRule = {
  pattern: { case?: Verb; value?: string };
  body: string;
  responseBody: string;
};
type RestOptions = { status: number; closed: boolean; timeout: number };

type Extensions = Record<'http' | 'rest' | 'header' | 'textOf' | 'link' | 'socket', DescExtension>;

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
  /** In milliseconds, of a call; undefined for the default. */
  timeoutMs: number | undefined;
  /** JSON name of the response field that is the answer; undefined for all of the message. */
  responseField: string | undefined;
  /** Position of links in the answer; undefined without links. */
  links: Links | undefined;
  /** Positions of JSON texts in the answer and in the request. */
  texts: { answer: JsonTexts | undefined; request: JsonTexts | undefined };
};

/** Calls one unary RPC. */
type Caller = (request: Message, options: CallOptions) => Promise<object>;

/** The contract's descriptors without comments, which are three quarters of the bytes. */
export function readContract(): FileRegistry {
  return readImage('contract.binpb');
}

/** With the comments that /openapi.json shows: read when it is first asked for. */
export function readDocumentedContract(): FileRegistry {
  return readImage('image.binpb');
}

function readImage(name: string): FileRegistry {
  const bytes = readFileSync(new URL(name, GENERATED));
  return createFileRegistry(fromBinary(FileDescriptorSetSchema, bytes));
}

/** The annotated RPCs, literal paths before parameters, so that the first match is correct. */
export function operationsOf(registry: FileRegistry): Operation[] {
  const extension = (name: string) => must(registry.getExtension(name), name);
  const extensions = {
    http: extension('google.api.http'),
    rest: extension('tabern.v1.rest'),
    header: extension('tabern.v1.header'),
    textOf: extension('tabern.v1.json_text_of'),
    link: extension('tabern.v1.link'),
    socket: extension('tabern.v1.websocket_link'),
  };
  return [...registry]
    .flatMap((type) => (type.kind === 'service' ? type.methods : []))
    .flatMap((method) => operationOf(method, extensions) ?? [])
    .sort((a, b) => (rank(a.template) < rank(b.template) ? -1 : 1));
}

/** Whether the operation is part of the compatible interface, which /openapi.json describes. */
export function isPublished({ template }: Operation): boolean {
  return template.startsWith('/v1/');
}

/** The call of an RPC, found by its gRPC path. Its answer has tenants' JSON as text. */
export function callerOf(clients: Clients, method: DescMethod): Caller {
  for (const name of Object.keys(SERVICES) as ServiceName[]) {
    for (const [key, { path }] of Object.entries(SERVICES[name])) {
      if (path !== pathOf(method)) continue;
      const call = must((clients[name] as Record<string, unknown>)[key], path) as Caller;
      return (request, options) =>
        call(request, { ...options, metadata: { ...options.metadata, ...TAKES_JSON_TEXT } });
    }
  }
  throw new Error(`no client for ${pathOf(method)}`);
}

/** The answer as JSON: one field of the response, or all of it. */
export function render(
  output: DescMessage,
  response: object,
  responseField: string | undefined,
): JsonValue {
  const json = jsonOf(output, response);
  return responseField === undefined ? json : must(json[responseField], responseField);
}

/** The field's name in JSON. */
export function jsonName(message: DescMessage, fieldName: string): string {
  const field = message.fields.find((one) => one.name === fieldName);
  return must(field, `${message.typeName}.${fieldName}`).jsonName;
}

function operationOf(
  method: DescMethod,
  { http, rest, header, textOf, link, socket }: Extensions,
): Operation | undefined {
  const rule = getOption(method, http) as unknown as HttpRule;
  const { case: verb, value: template } = rule.pattern;
  if (verb === undefined || template === undefined) return undefined;
  if (rule.body !== '' && rule.body !== '*') throw new Error(`${method}: body must be "*" or none`);
  const options = getOption(method, rest) as unknown as RestOptions;
  const responseField = rule.responseBody ? jsonName(method.output, rule.responseBody) : undefined;
  const linkOf = (field: DescField) => {
    if (optionOf(field, link) === true) return 'link';
    return optionOf(field, socket) === true ? 'websocket' : undefined;
  };
  const shownBy = (field: DescField) => {
    const name = optionOf(field, textOf);
    return typeof name === 'string' && name !== '' ? jsonName(field.parent, name) : undefined;
  };
  return {
    method,
    verb,
    template,
    pathFields: [...template.matchAll(/\{(\w+)\}/g)].map((match) => must(match[1], 'a name')),
    headerFields: headerFieldsOf(method.input, header),
    status: options.status || 200,
    hasBody: rule.body === '*',
    closed: options.closed,
    timeoutMs: options.timeout === 0 ? undefined : options.timeout * 1_000,
    responseField,
    links: shown(marksOf(method.output, linkOf), responseField),
    texts: {
      answer: shown(marksOf(method.output, shownBy), responseField),
      request: marksOf(method.input, shownBy),
    },
  };
}

function headerFieldsOf({ fields }: DescMessage, header: DescExtension): Map<string, DescField> {
  return new Map(
    fields.flatMap((field) => {
      const name = optionOf(field, header);
      return typeof name === 'string' && name !== '' ? [[name, field] as const] : [];
    }),
  );
}

/** Undefined for the many fields without it, where `getOption` would make a container first. */
function optionOf(field: DescField, option: DescExtension): unknown {
  return hasOption(field, option) ? getOption(field, option) : undefined;
}

/** Marks of the answer, which may be one field of the response. */
function shown<T extends string>(marks: Marks<T> | undefined, responseField: string | undefined) {
  if (responseField === undefined) return marks;
  const below = marks?.get(responseField);
  return typeof below === 'object' ? below : undefined;
}

/** `~` sorts after every letter: a parameter sorts after literals. */
function rank(template: string): string {
  return template.replace(/\{\w+\}/g, '~');
}

function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}
