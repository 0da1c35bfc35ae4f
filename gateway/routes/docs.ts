/**
 * GET /docs: the OpenAPI description as a page. The viewer is Swagger UI, served from here. Needs
 * no API key, like the description. Files are read on first use.
 */
import { readFile } from 'node:fs/promises';
import type Router from '@koa/router';
import { Fault } from '../../proto/rpc/errors.ts';
import type { State } from '../http/auth.ts';
import { FAILURE } from './openapi-parts.ts';

const FILES: Readonly<Record<string, { type: string; from: string }>> = {
  'docs.js': { type: 'text/javascript; charset=utf-8', from: 'docs.js' },
  'swagger-ui-bundle.js': {
    type: 'text/javascript; charset=utf-8',
    from: 'gen/swagger-ui-bundle.js',
  },
  'swagger-ui.css': { type: 'text/css; charset=utf-8', from: 'gen/swagger-ui.css' },
};

/** Requests go to this service only; icons are in the style sheet. */
const HEADERS = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'referrer-policy': 'no-referrer',
} as const;

export function addDocs(router: Router<State>): void {
  router.get('/docs', async (ctx) => {
    ctx.set(HEADERS);
    ctx.type = 'html';
    ctx.body = await read('index.html');
  });
  router.get('/docs/:file', async (ctx) => {
    const { file = '' } = ctx.params;
    const found = Object.hasOwn(FILES, file) ? FILES[file] : undefined;
    if (!found) throw new Fault('ROUTE_NOT_FOUND', `Route ${ctx.method} ${ctx.path} not found.`);
    ctx.set(HEADERS);
    // The viewer changes only with the service: clients cache it for an hour.
    if (found.from.startsWith('gen/')) ctx.set('cache-control', 'public, max-age=3600');
    ctx.type = found.type;
    ctx.body = await read(found.from);
  });
}

function read(name: string): Promise<Buffer> {
  return readFile(new URL(`../web/docs/${name}`, import.meta.url));
}

/** The OpenAPI description of these routes. */
export const DOCS_PATHS = {
  '/docs': {
    get: {
      operationId: 'docs',
      summary: 'The API reference as a page.',
      security: [],
      responses: {
        200: { description: 'HTML.', content: { 'text/html': { schema: { type: 'string' } } } },
        default: FAILURE,
      },
    },
  },
  '/docs/{file}': {
    get: {
      operationId: 'docsFile',
      summary: 'An asset of the API reference.',
      security: [],
      parameters: [{ name: 'file', in: 'path', required: true, schema: { type: 'string' } }],
      responses: {
        200: {
          description: 'A script or a style sheet.',
          content: {
            'text/javascript': { schema: { type: 'string' } },
            'text/css': { schema: { type: 'string' } },
          },
        },
        default: FAILURE,
      },
    },
  },
};
