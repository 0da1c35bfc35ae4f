/** The OpenAPI description of the MCP endpoint. */
import { json, refer } from '../openapi-parts.ts';

export const MCP_PATH = '/mcp';

const MESSAGE = {
  type: 'object',
  required: ['jsonrpc'],
  properties: {
    jsonrpc: { type: 'string', enum: ['2.0'] },
    id: {},
    method: { type: 'string' },
    params: { type: 'object' },
  },
};
const ANSWER = {
  type: 'object',
  required: ['jsonrpc'],
  properties: { jsonrpc: { type: 'string' }, id: {}, result: {}, error: {} },
};
const EXAMPLE = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
const FAILURE = {
  description: 'See statusCode; or an error of the protocol.',
  content: json({ anyOf: [refer('Error'), ANSWER] }),
};

export const MCP_PATHS = {
  [MCP_PATH]: {
    post: {
      operationId: 'mcp',
      summary: 'The Model Context Protocol, over streamable HTTP without sessions.',
      requestBody: { required: true, content: json(MESSAGE, EXAMPLE) },
      responses: {
        200: { description: 'The response to the message.', content: json(ANSWER) },
        202: { description: 'The message needs no response.' },
        default: FAILURE,
      },
    },
  },
};
