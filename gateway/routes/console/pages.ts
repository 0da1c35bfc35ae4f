/**
 * The console's page and its assets, which `npm run prepare` builds into gateway/web/console/gen.
 * Every path of the console that is no asset and no API answers with the page, whose script shows
 * what the path names. Assets have the hash of their content in their name.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname } from 'node:path';
import type Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import { CONSOLE_HEADERS } from '../../../proto/network/console-headers.ts';
import type { State } from '../../http/auth.ts';
import { routeNotFound } from '../pages.ts';
import { refuseUnserved } from '../unserved.ts';

/** Built by `npm run prepare`. */
const BUILT = new URL('../../web/console/gen/', import.meta.url);
const ASSETS = 'assets/';
/** Of a compressed copy beside its file. */
const BROTLI = '.br';
const ASSET_CACHE = 'public, max-age=31536000, immutable';
/** Not `/console/api` and `/console/assets`. */
const PAGES_NAME = '/console/*'; // in metrics and spans
const PAGES = /^\/console(?:\/(?!(?:api|assets)(?:\/|$)).*)?$/;

type Asset = { type: string; plain: Buffer; brotli: Buffer | undefined; etag: string };
type Files = { page: Asset; assets: ReadonlyMap<string, Asset> };

/** Undefined when the console is not built: a checkout without `npm run prepare`. */
export type ConsoleFiles = Files | undefined;

/** Reads all files: less than 1 MB. */
export function readConsole(folder = BUILT): ConsoleFiles {
  if (!existsSync(new URL('index.html', folder))) return undefined;
  const assets = new URL(ASSETS, folder);
  const names = existsSync(assets) ? readdirSync(assets) : [];
  const shown = names.filter((name) => !name.endsWith(BROTLI));
  return {
    page: readAsset(new URL('index.html', folder)),
    assets: new Map(shown.map((name) => [name, readAsset(new URL(name, assets))])),
  };
}

/** Headers of every answer of the console, errors included. */
export const consoleHeaders: Middleware = (ctx, next) => {
  if (`${ctx.path}/`.startsWith('/console/')) ctx.set(CONSOLE_HEADERS);
  return next();
};

export function addConsolePages(router: Router<State>, { page, assets }: Files): void {
  router.get(`/console/${ASSETS}:file`, (ctx) => {
    const asset = assets.get(ctx.params['file'] ?? '');
    if (asset === undefined) throw routeNotFound(ctx);
    ctx.set('cache-control', ASSET_CACHE);
    send(ctx, asset);
  });
  router.get(PAGES, (ctx) => {
    ctx['_matchedRoute'] = PAGES_NAME;
    send(ctx, page);
  });
  router.get('/', (ctx) => {
    refuseUnserved(ctx.method, ctx.URL); // with a credential, it is the address of a WebSocket
    ctx.redirect('/console');
  });
}

function send(ctx: Context, { type, plain, brotli, etag }: Asset): void {
  const isPacked = brotli !== undefined && ctx.acceptsEncodings('br', 'identity') === 'br';
  ctx.vary('accept-encoding');
  ctx.status = 200;
  ctx.type = type;
  // Each representation has its own tag (RFC 9110 8.8.3.3).
  ctx.etag = isPacked ? `${etag}-br` : etag;
  if (isPacked) ctx.set('content-encoding', 'br');
  if (ctx.fresh) ctx.status = 304;
  else ctx.body = isPacked ? brotli : plain;
}

function readAsset(file: URL): Asset {
  const plain = readFileSync(file);
  const packed = new URL(`${file.href}${BROTLI}`);
  const etag = createHash('sha256').update(plain).digest('base64url').slice(0, 22);
  const brotli = existsSync(packed) ? readFileSync(packed) : undefined;
  return { type: extname(file.pathname), plain, brotli, etag };
}
