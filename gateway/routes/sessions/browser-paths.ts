/**
 * OpenAPI descriptions of routes outside /v1 without a key header: connections to a session's
 * browser, and live view pages. The answer to an upgrade is 101 without a body.
 */

import { CREDENTIALS, FAILURE, query, TEXT, upgrade } from '../openapi-parts.ts';
import { DISCOVERY_PATHS } from './discovery-paths.ts';

const TOKEN = query('token', 'Token of the live view, from GET /v1/sessions/{id}/debug.', true);

const STATUS = {
  type: 'object',
  required: ['status'],
  properties: {
    status: { const: 'RUNNING' },
    expiresAt: { type: 'string', format: 'date-time' },
  },
};

export const BROWSER_PATHS = {
  '/': upgrade('connectByKey', 'CDP connection to a session, or to a new one.', CREDENTIALS),
  '/connect': upgrade('connect', 'CDP connection to a session: its connectUrl.', CREDENTIALS),
  '/view': upgrade('view', 'WebSocket of a live view.', [TOKEN]),
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
          description: 'A page with the reason, or an error for clients that accept JSON.',
          content: { ...FAILURE.content, 'text/html': TEXT },
        },
      },
    },
  },
  '/live/status': {
    get: {
      operationId: 'liveStatus',
      summary: 'Why a live view was refused, since browsers hide the reason.',
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
      summary: 'An asset of the live view page.',
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
