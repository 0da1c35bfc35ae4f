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
import { VERSION } from '../process/version.ts';
import { isJsonText } from '../rest/json-texts.ts';
import { jsonName, type Operation } from '../rest/operations.ts';
import { commentsOf } from '../rest/proto-comments.ts';
import { otherFieldsOf, queryFieldsOf } from '../rest/transcode.ts';
import { DOCS_PATHS } from './docs.ts';
import { BUILDS_PATHS } from './files/builds.ts';
import { CERTIFICATES_PATHS } from './files/certificates.ts';
import { CONTEXTS_PATHS } from './files/contexts.ts';
import { DOWNLOAD_CONTENT, DOWNLOADS_PATHS } from './files/downloads.ts';
import { EXTENSIONS_PATHS } from './files/extensions.ts';
import { UPLOADS_PATHS } from './files/uploads.ts';
import { HEALTH_PATHS } from './health.ts';
import { waitingPart } from './invoke.ts';
import { MCP_PATHS } from './mcp/paths.ts';
import { contentPart } from './one-shots.ts';
import { EXAMPLES } from './openapi-examples.ts';
import { FAILURE, json, keyless, refer } from './openapi-parts.ts';
import { TAG_LIST, tagged } from './openapi-tags.ts';
import { BROWSER_PATHS } from './sessions/paths.ts';
import { RECORDINGS_PATHS } from './sessions/recordings.ts';
import { START_PATHS } from './sessions/stagehand-start.ts';

const ABOUT = 'Remote browser sessions, functions, contexts and webhooks. The guide is at /docs.';

type Schema = { [key: string]: unknown };
/** Schemas are collected while operations are described. */
type Described = { comments: ReturnType<typeof commentsOf>; schemas: Map<string, Schema> };

const KNOWN: Readonly<Record<string, Schema>> = {
  'google.protobuf.Struct': { type: 'object', additionalProperties: true },
  'google.protobuf.Value': {},
  'google.protobuf.Timestamp': { type: 'string', format: 'date-time' },
};

/** The whole document as JSON. `more`: paths that are not published. */
export function describe(
  registry: FileRegistry,
  operations: readonly Operation[],
  more: Readonly<Record<string, object>> = {},
): Schema {
  const schemas = new Map<string, Schema>([['Error', ERROR]]);
  const described = { comments: commentsOf(registry), schemas };
  const paths: Record<string, Schema> = structuredClone({
    ...HEALTH_PATHS,
    ...OPENAPI_PATHS,
    ...DOCS_PATHS,
    ...BROWSER_PATHS,
    ...BUILDS_PATHS,
    ...CERTIFICATES_PATHS,
    ...CONTEXTS_PATHS,
    ...DOWNLOADS_PATHS,
    ...EXTENSIONS_PATHS,
    ...START_PATHS,
    ...UPLOADS_PATHS,
    ...RECORDINGS_PATHS,
    ...MCP_PATHS,
    ...more,
  });
  for (const operation of operations) {
    const template = operation.template.replace(/\{(\w+)\}/g, (_, field) => {
      return `{${jsonName(operation.method.input, field)}}`;
    });
    paths[template] ??= {};
    paths[template][operation.verb] = describeOperation(operation, described);
  }
  return {
    openapi: '3.1.0',
    info: { title: 'tabern', version: VERSION, description: ABOUT },
    servers: [{ url: '/', description: 'This service.' }],
    security: [{ apiKey: [] }, { bearer: [] }],
    tags: TAG_LIST,
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

const OPENAPI_PATHS = {
  '/openapi.json': keyless('openapi', 'This OpenAPI document.', {
    responses: { 200: { description: 'OpenAPI 3.1.', content: { 'application/json': {} } } },
  }),
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

function describeOperation(operation: Operation, described: Described): Schema {
  const { method, status, responseField, hasBody } = operation;
  const output = method.output.fields.find((field) => field.jsonName === responseField);
  const schema = output ? schemaOf(output, described) : referTo(method.output, described);
  const success =
    status === 204
      ? { description: 'Done.' }
      : {
          description: described.comments(method.output),
          content: {
            ...json(schema),
            ...(method.localName === 'getDownload' && DOWNLOAD_CONTENT),
            ...contentPart(operation),
          },
        };
  const waits = waitingPart(operation, success);
  const parameters = [...parametersOf(operation, described), ...waits.parameters];
  return {
    operationId: method.localName,
    ...helpOf(described.comments(method)),
    ...(parameters.length > 0 && { parameters }),
    ...(hasBody && { requestBody: bodyOf(operation, described) }),
    responses: {
      ...waits.responses,
      [status]: success,
      default: FAILURE,
    },
  };
}

/** The first sentence is the summary, which viewers show in one line. */
function helpOf(comment: string): { summary: string; description?: string } {
  const [summary = '', ...more] = comment.split(/(?<=[.;:]) /);
  return more.length === 0
    ? { summary }
    : { summary: summary.replace(/[;:]$/, '.'), description: comment };
}

/** Parameters of path, query and headers. */
function parametersOf(operation: Operation, described: Described) {
  const { method, pathFields, headerFields } = operation;
  const inPath = method.input.fields.filter((field) => pathFields.includes(field.name));
  const parameter = (field: DescField, place: 'path' | 'query' | 'header', name: string) => ({
    name,
    in: place,
    required: place === 'path',
    description: described.comments(field),
    schema: schemaOf(field, described),
  });
  return [
    ...inPath.map((field) => parameter(field, 'path', field.jsonName)),
    ...queryFieldsOf(operation).map((field) => parameter(field, 'query', field.jsonName)),
    ...[...headerFields].map(([name, field]) => parameter(field, 'header', name)),
  ];
}

/** Schema of the body: the request without the fields of the path. */
function bodyOf(operation: Operation, described: Described): Schema {
  const schema = {
    type: 'object',
    properties: propertiesOf(otherFieldsOf(operation), described),
    ...(operation.closed && { additionalProperties: false }),
  };
  const example = EXAMPLES[operation.method.localName];
  return { required: false, content: json(schema, example) };
}

function propertiesOf(fields: readonly DescField[], described: Described): Schema {
  const shown = fields.filter((field) => !isJsonText(field));
  return Object.fromEntries(
    shown.map((field) => [
      field.jsonName,
      { ...schemaOf(field, described), description: described.comments(field) },
    ]),
  );
}

function referTo(message: DescMessage, described: Described): Schema {
  const known = KNOWN[message.typeName];
  if (known) return known;
  const name = message.typeName.replace(/^tabern\.v1\./, '');
  if (!described.schemas.has(name)) {
    const schema: Schema = { type: 'object', description: described.comments(message) };
    described.schemas.set(name, schema);
    schema['properties'] = propertiesOf(message.fields, described);
  }
  return refer(name);
}

function schemaOf(field: DescField, described: Described): Schema {
  const one = (): Schema => {
    if (field.message) return referTo(field.message, described);
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
