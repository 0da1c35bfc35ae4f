/** Shared parts of the OpenAPI descriptions of hand-written routes. */

export const ID = { name: 'id', in: 'path', required: true, schema: { type: 'string' } };

export const BINARY = { schema: { type: 'string', format: 'binary' } };

export const FAILURE = {
  description: 'See statusCode.',
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
};

/** A form with one file. */
export function fileBody(description: string) {
  const file = { type: 'string', format: 'binary', description };
  const schema = { type: 'object', required: ['file'], properties: { file } };
  return { required: true, content: { 'multipart/form-data': { schema } } };
}

export const TEXT = { schema: { type: 'string' } };

export const query = (name: string, description: string, required = false) => ({
  name,
  in: 'query',
  required,
  description,
  schema: { type: 'string' },
});

/** Parameters that select a session for its browser. */
export const CREDENTIALS = [
  query('signingKey', 'The signing key of the session, from connectUrl.'),
  query('apiKey', 'An API key, instead of signingKey.'),
  query('sessionId', 'The session, with an API key.'),
];

export function upgrade(operationId: string, summary: string, parameters: object[]) {
  const responses = {
    101: { description: 'Switched to WebSocket.' },
    default: FAILURE,
  };
  return { get: { operationId, summary, security: [], parameters, responses } };
}
