/**
 * What is not under /v1 and has no key in a header, as the OpenAPI description tells of it: the way
 * to a session's browser, and the pages of live views. An upgrade's answer is 101, and no body.
 */

import { CREDENTIALS, FAILURE, query, TEXT, upgrade } from '../openapi-parts.ts';
import { DISCOVERY_PATHS } from './discovery-paths.ts';

const TOKEN = query('token', 'The right to look, from GET /v1/sessions/{id}/debug.', true);

const STATUS = {
  type: 'object',
  required: ['status'],
  properties: {
    status: { const: 'RUNNING' },
    expiresAt: { type: 'string', format: 'date-time' },
  },
};

export const BROWSER_PATHS = {
  '/': upgrade('connectByKey', 'Drives a session, or a new one.', CREDENTIALS),
  '/connect': upgrade('connect', 'Drives a session: its connectUrl.', CREDENTIALS),
  '/view': upgrade('view', 'Watches a session: the line of a live view.', [TOKEN]),
  ...DISCOVERY_PATHS,
  '/live': {
    get: {
      operationId: 'live',
      summary: 'The page of a live view: debuggerUrl.',
      security: [],
      parameters: [TOKEN],
      responses: {
        200: { description: 'HTML.', content: { 'text/html': TEXT } },
        default: {
          description: 'A page that says why, or an error for who asks for JSON.',
          content: { ...FAILURE.content, 'text/html': TEXT },
        },
      },
    },
  },
  '/live/status': {
    get: {
      operationId: 'liveStatus',
      summary: 'Why a live view was refused; browsers do not tell.',
      security: [],
      parameters: [TOKEN],
      responses: {
        200: { description: 'It runs.', content: { 'application/json': { schema: STATUS } } },
        default: FAILURE,
      },
    },
  },
  '/live/{file}': {
    get: {
      operationId: 'liveFile',
      summary: 'A part of that page.',
      security: [],
      parameters: [{ name: 'file', in: 'path', required: true, schema: { type: 'string' } }],
      responses: {
        200: {
          description: 'A script or a style sheet.',
          content: { 'text/javascript': TEXT, 'text/css': TEXT },
        },
        default: FAILURE,
      },
    },
  },
};
