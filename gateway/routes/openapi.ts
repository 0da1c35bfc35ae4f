/**
 * The OpenAPI 3.1 description, generated from the descriptors of the routes, so every route is
 * described. Comments of the contract are the descriptions; hand-written routes add their own.
 */
import {
  type DescField,
  type DescMessage,
  type FileRegistry,
  ScalarType,
} from '@bufbuild/protobuf';
import { must } from '../../proto/common/must.ts';
import { isJsonText } from '../rest/json-texts.ts';
import { jsonName, type Operation } from '../rest/operations.ts';
import { commentsOf } from '../rest/proto-comments.ts';
import { queryFieldsOf } from '../rest/transcode.ts';
import { DOCS_PATHS } from './docs.ts';
import { BUILDS_PATHS } from './files/builds.ts';
import { CONTEXTS_PATHS } from './files/contexts.ts';
import { FILES_PATHS, fileContents } from './files/routes.ts';
import { HEALTH_PATHS } from './health.ts';
import { waitingPart } from './invoke.ts';
import { BROWSER_PATHS } from './sessions/browser-paths.ts';
import { RECORDINGS_PATHS } from './sessions/recordings.ts';

type Schema = { [key: string]: unknown };
type Comments = ReturnType<typeof commentsOf>;

const KNOWN: Readonly<Record<string, Schema>> = {
  'google.protobuf.Struct': { type: 'object', additionalProperties: true },
  'google.protobuf.Value': {},
  'google.protobuf.Timestamp': { type: 'string', format: 'date-time' },
};

/** The whole document as JSON. */
export function describe(registry: FileRegistry, operations: readonly Operation[]): Schema {
  const comments = commentsOf(registry);
  const schemas = new Map<string, Schema>([['Error', ERROR]]);
  const paths: Record<string, Schema> = structuredClone({
    ...HEALTH_PATHS,
    ...OPENAPI_PATHS,
    ...DOCS_PATHS,
    ...BROWSER_PATHS,
    ...BUILDS_PATHS,
    ...CONTEXTS_PATHS,
    ...FILES_PATHS,
    ...RECORDINGS_PATHS,
  });
  for (const operation of operations) {
    const template = operation.template.replace(/\{(\w+)\}/g, (_, field) => {
      return `{${jsonName(operation.method.input, field)}}`;
    });
    const described = { [operation.verb]: describeOperation(operation, comments, schemas) };
    paths[template] = { ...paths[template], ...described };
  }
  return {
    openapi: '3.1.0',
    info: { title: 'tabern', version: 'v1', description: 'Remote browser sessions and functions.' },
    security: [{ apiKey: [] }, { bearer: [] }],
    paths: tagged(paths),
    components: {
      securitySchemes: {
        apiKey: { type: 'apiKey', in: 'header', name: 'X-SVC-API-Key' },
        bearer: { type: 'http', scheme: 'bearer' },
      },
      schemas: Object.fromEntries([...schemas].sort(([a], [b]) => (a < b ? -1 : 1))),
    },
  };
}

/** Tags by the noun after /v1, so that viewers group related operations. */
function tagged(paths: Record<string, Schema>): Record<string, Schema> {
  const shown = Object.entries(paths).map(([path, verbs]) => {
    const tag = /^\/v1\/(\w+)/.exec(path)?.[1] ?? 'service';
    const operations = Object.entries(verbs).map(([verb, operation]) => {
      return [verb, { ...(operation as Schema), tags: [tag] }];
    });
    return [path, Object.fromEntries(operations)];
  });
  return Object.fromEntries(shown);
}

const OPENAPI_PATHS = {
  '/openapi.json': {
    get: {
      operationId: 'openapi',
      summary: 'This OpenAPI document.',
      security: [],
      responses: { 200: { description: 'OpenAPI 3.1.', content: { 'application/json': {} } } },
    },
  },
};

const ERROR: Schema = {
  type: 'object',
  required: ['statusCode', 'error', 'message'],
  additionalProperties: false,
  properties: {
    statusCode: { type: 'integer' },
    error: { type: 'string', description: 'The HTTP reason phrase.' },
    message: { type: 'string', description: 'One sentence that describes the error.' },
  },
};

function describeOperation(
  operation: Operation,
  comments: Comments,
  schemas: Map<string, Schema>,
): Schema {
  const { method, status, responseField, hasBody } = operation;
  const output = method.output.fields.find((field) => field.jsonName === responseField);
  const schema = output
    ? schemaOf(output, comments, schemas)
    : referTo(method.output, comments, schemas);
  const success =
    status === 204
      ? { description: 'Done.' }
      : {
          description: comments(method.output),
          content: { 'application/json': { schema }, ...fileContents(operation) },
        };
  const waits = waitingPart(operation, success);
  const parameters = [...parametersOf(operation, comments, schemas), ...waits.parameters];
  return {
    operationId: method.localName,
    summary: comments(method),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(hasBody ? { requestBody: bodyOf(operation, comments, schemas) } : {}),
    responses: {
      ...waits.responses,
      [status]: success,
      default: {
        description: 'See statusCode.',
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
      },
    },
  };
}

/** Parameters of path, query and headers. */
function parametersOf(operation: Operation, comments: Comments, schemas: Map<string, Schema>) {
  const { method, pathFields, headerFields } = operation;
  const inPath = method.input.fields.filter((field) => pathFields.includes(field.name));
  const parameter = (field: DescField, place: 'path' | 'query' | 'header', name: string) => ({
    name,
    in: place,
    required: place === 'path',
    ...described(schemaOf(field, comments, schemas), comments(field)),
  });
  return [
    ...inPath.map((field) => parameter(field, 'path', field.jsonName)),
    ...queryFieldsOf(operation).map((field) => parameter(field, 'query', field.jsonName)),
    ...[...headerFields].map(([name, field]) => parameter(field, 'header', name)),
  ];
}

function described(schema: Schema, description: string): Schema {
  return { description, schema };
}

/** Schema of the body: the request without the fields of the path. */
function bodyOf(operation: Operation, comments: Comments, schemas: Map<string, Schema>): Schema {
  const { method, pathFields, headerFields, closed } = operation;
  const inHeaders = [...headerFields.values()];
  const fields = method.input.fields.filter(
    (field) => !pathFields.includes(field.name) && !inHeaders.includes(field),
  );
  const schema = {
    type: 'object',
    properties: propertiesOf(fields, comments, schemas),
    ...(closed ? { additionalProperties: false } : {}),
  };
  return { required: false, content: { 'application/json': { schema } } };
}

function propertiesOf(
  fields: readonly DescField[],
  comments: Comments,
  schemas: Map<string, Schema>,
): Schema {
  const shown = fields.filter((field) => !isJsonText(field));
  return Object.fromEntries(
    shown.map((field) => [
      field.jsonName,
      { ...schemaOf(field, comments, schemas), description: comments(field) },
    ]),
  );
}

function referTo(message: DescMessage, comments: Comments, schemas: Map<string, Schema>): Schema {
  const known = KNOWN[message.typeName];
  if (known) return known;
  const name = message.typeName.replace(/^tabern\.v1\./, '');
  if (!schemas.has(name)) {
    const schema: Schema = { type: 'object', description: comments(message) };
    schemas.set(name, schema);
    schema['properties'] = propertiesOf(message.fields, comments, schemas);
  }
  return { $ref: `#/components/schemas/${name}` };
}

function schemaOf(field: DescField, comments: Comments, schemas: Map<string, Schema>): Schema {
  const one = (): Schema => {
    if (field.message) return referTo(field.message, comments, schemas);
    if (field.enum) return { type: 'string', enum: field.enum.values.map((value) => value.name) };
    return SCALARS[must(field.scalar, `scalar of ${field}`)] ?? {};
  };
  return field.fieldKind === 'list' ? { type: 'array', items: one() } : one();
}

const SCALARS: Partial<Record<ScalarType, Schema>> = {
  [ScalarType.STRING]: { type: 'string' },
  [ScalarType.BOOL]: { type: 'boolean' },
  [ScalarType.UINT32]: { type: 'integer', minimum: 0 },
  [ScalarType.DOUBLE]: { type: 'number' },
};
