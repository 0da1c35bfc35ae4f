/** What the OpenAPI descriptions of several hand-written routes say alike. */

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
