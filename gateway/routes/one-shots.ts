/**
 * The answer of a one-shot as its content: the generated route, registered later, answers with
 * JSON; unless the client accepts nothing else, the content of that answer is sent instead, and
 * what the JSON says of the page is in headers.
 */

import type Router from '@koa/router';
import type { RouterMiddleware } from '@koa/router';
import type { State } from '../http/auth.ts';
import type { Operation } from '../rest/operations.ts';
import { BINARY, TEXT } from './openapi-parts.ts';

/** The member of the answer that has the content, and the types of the content. */
type Content = { member: string; isBase64: boolean; types: readonly string[] };

/** By operation. An answer without an entry is JSON for every client. */
const CONTENTS: Readonly<Record<string, Content>> = {
  takeScreenshot: {
    member: 'data',
    isBase64: true,
    types: ['image/png', 'image/jpeg', 'image/webp'],
  },
  printPdf: { member: 'data', isBase64: true, types: ['application/pdf'] },
  readContent: { member: 'content', isBase64: false, types: ['text/html'] },
  readMarkdown: { member: 'markdown', isBase64: false, types: ['text/markdown'] },
};
/** Also those without another content than JSON. */
const ROUTES: Readonly<Record<string, string>> = {
  '/v1/screenshot': 'takeScreenshot',
  '/v1/pdf': 'printPdf',
  '/v1/content': 'readContent',
  '/v1/links': 'readLinks',
  '/v1/markdown': 'readMarkdown',
};

type Answer = {
  sessionId: string;
  page: { url: string; title: string; status?: number };
  contentType?: string;
} & Record<string, unknown>;

/** To be called before the generated routes are added. */
export function addOneShots(router: Router<State>): void {
  for (const [path, name] of Object.entries(ROUTES)) router.post(path, asContent(CONTENTS[name]));
}

function asContent(shown: Content | undefined): RouterMiddleware<State> {
  return async (ctx, next) => {
    await next();
    const answer = ctx.state.answer as Answer;
    const { contentType = '', sessionId, page } = answer;
    ctx.set('x-session-id', sessionId);
    if (page.status !== undefined) ctx.set('x-page-status', String(page.status));
    if (shown === undefined) return;
    ctx.vary('accept');
    const [mime = ''] = contentType.split(';');
    // the type comes from a process that is not trusted
    const isKnown = shown.types.includes(mime);
    if (!isKnown || ctx.accepts([mime, 'application/json']) !== mime) return;
    const content = String(answer[shown.member]);
    ctx.set('content-type', shown.isBase64 ? mime : `${mime}; charset=utf-8`);
    // what a browser shows of it is not of this origin
    ctx.set('content-security-policy', 'sandbox');
    ctx.body = shown.isBase64 ? Buffer.from(content, 'base64') : content;
  };
}

/** Additions to the description of the operation: types of its content. */
export function contentPart({ method }: Operation): Readonly<Record<string, object>> {
  const { types, isBase64 } = CONTENTS[method.localName] ?? { types: [], isBase64: false };
  return Object.fromEntries(types.map((type) => [type, isBase64 ? BINARY : TEXT]));
}
