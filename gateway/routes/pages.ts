/** Pages and their assets, which are files of gateway/web. */
import type { Context } from 'koa';
import { Fault } from '../../proto/rpc/errors.ts';

/** Headers of a page: it sends requests to this service only, and no link leaks its URL. */
export function pageHeaders({ images, ancestors }: { images: string; ancestors: string }) {
  return {
    'content-security-policy': [
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "connect-src 'self'",
      `img-src ${images}`,
      "base-uri 'none'",
      "form-action 'none'",
      `frame-ancestors ${ancestors}`,
    ].join('; '),
    'referrer-policy': 'no-referrer',
  };
}

export function routeNotFound({ method, path }: Pick<Context, 'method' | 'path'>): Fault {
  return new Fault('ROUTE_NOT_FOUND', `Route ${method} ${path} not found.`);
}
