/** Parts of the OpenAPI descriptions of hand-written routes. */

export const TEXT = { schema: { type: 'string' } };
export const BINARY = { schema: { type: 'string', format: 'binary' } };
export const FAILURE = { description: 'See statusCode.', content: json(refer('Error')) };
export const ID = inPath('id');
/** The content of a script or a style sheet. */
export const ASSET = { 'text/javascript': TEXT, 'text/css': TEXT };

/** Parameters that select a session for its browser. */
export const CREDENTIALS = [
  query('signingKey', 'The signing key of the session, from connectUrl.'),
  query('apiKey', 'An API key, instead of signingKey.'),
  query('sessionId', 'The session, with an API key.'),
];
/** Parameters of a signed URL. */
export const SIGNED = ['expires', 'project', 'key', 'signature'].map((name) =>
  query(name, 'Signature parameters of the URL; any change invalidates it.', name !== 'key'),
);

export function refer(name: string) {
  return { $ref: `#/components/schemas/${name}` };
}

export function json(schema: object, example?: object) {
  return { 'application/json': { schema, ...(example && { example }) } };
}

/** An object of texts, all of which are required. */
export function texts(...names: string[]) {
  const properties = Object.fromEntries(names.map((name) => [name, { type: 'string' }]));
  return { type: 'object', required: names, properties };
}

/** The success and the errors of an operation. */
export function answers(description: string, content: object, code = 200) {
  return { [code]: { description, content }, default: FAILURE };
}

/** A GET that needs no API key. */
export function keyless(
  operationId: string,
  summary: string,
  more: { responses: object; parameters?: object[] },
) {
  return { get: { operationId, summary, security: [], ...more } };
}

/** A GET that becomes a WebSocket: its answer is 101 without a body. */
export function upgrade(operationId: string, summary: string, parameters: object[]) {
  const responses = { 101: { description: 'Switched to WebSocket.' }, default: FAILURE };
  return keyless(operationId, summary, { parameters, responses });
}

/** A form with one file. */
export function fileBody(description: string) {
  const properties = { file: { type: 'string', format: 'binary', description } };
  return formBody({ type: 'object', required: ['file'], properties });
}

export function formBody(schema: object) {
  return { required: true, content: { 'multipart/form-data': { schema } } };
}

export function inPath(name: string) {
  return { name, in: 'path', required: true, schema: { type: 'string' } };
}

export function query(name: string, description: string, required = false) {
  return { name, in: 'query', required, description, schema: { type: 'string' } };
}
