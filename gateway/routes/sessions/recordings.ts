/**
 * Recordings for players: the playlist of a page (HLS with fragmented MP4, RFC 8216), and the bytes
 * of its signed URLs, which need no API key: core verifies them. Range requests are supported,
 * which <video> needs to seek.
 */
import Router, { type RouterMiddleware } from '@koa/router';
import type { Context, Middleware } from 'koa';
import { FILE_TRANSFER_TIMEOUT_MS } from '../../../proto/common/limits.ts';
import { must } from '../../../proto/common/must.ts';
import type { GetReplayResponse } from '../../../proto/gen/tabern/v1/sessions.pb.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import { callAsGateway, type State } from '../../http/auth.ts';
import { baseUrlOf } from '../../http/base-url.ts';
import { begun } from '../../http/blob-stream.ts';
import { answers, BINARY, FAILURE, ID, inPath, SIGNED, TEXT } from '../openapi-parts.ts';

export const REPLAY_ROUTE = '/v1/sessions/:id/replays/:pageId';
const PART_ROUTE = '/v1/sessions/:id/replays/:pageId/:name';
const FILE_ROUTE = '/v1/sessions/:id/recording/downloads/:name';
const PLAYLIST = 'application/vnd.apple.mpegurl';
/** One range of bytes; either end may be absent. RFC 9110, 14.1.2. */
const RANGE = /^bytes=(\d{0,15})-(\d{0,15})$/;

type Options = { clients: Clients; gatewayToken: string };

type PlaylistOptions = { clients: Clients; publicUrl: string | undefined };

/** The playlist; requires an API key. */
export function getReplay({ clients, publicUrl }: PlaylistOptions): RouterMiddleware<State> {
  return async (ctx) => {
    const call = must(ctx.state.call, 'a key');
    const [id, pageId] = [String(ctx.params['id']), String(ctx.params['pageId'])];
    sendPlaylist(ctx, await clients.sessions.getReplay({ id, pageId }, call()), publicUrl);
  };
}

/** The playlist of a shared session; requires its link. */
export function getSharedReplay({ clients, publicUrl }: PlaylistOptions): RouterMiddleware<State> {
  return async (ctx) => {
    const call = must(ctx.state.call, 'a link');
    const pageId = String(ctx.params['pageId']);
    const { replay } = await clients.consoleShares.getSharedReplay({ pageId }, call());
    sendPlaylist(ctx, must(replay, 'a replay'), publicUrl);
  };
}

function sendPlaylist(ctx: Context, replay: GetReplayResponse, publicUrl?: string): void {
  ctx.set('content-type', PLAYLIST);
  ctx.body = playlistOf(replay, publicUrl ?? baseUrlOf(ctx));
}

/** A playlist of a running recording has no end yet, and grows. Pure. */
export function playlistOf({ initUrl, segments, live }: GetReplayResponse, base: string): string {
  const longest = Math.max(1, ...segments.map(({ duration }) => Math.ceil(duration)));
  return [
    '#EXTM3U',
    '#EXT-X-VERSION:7',
    `#EXT-X-TARGETDURATION:${longest}`,
    '#EXT-X-MEDIA-SEQUENCE:1',
    `#EXT-X-PLAYLIST-TYPE:${live ? 'EVENT' : 'VOD'}`,
    '#EXT-X-INDEPENDENT-SEGMENTS',
    `#EXT-X-MAP:URI="${base}${initUrl}"`,
    ...segments.flatMap(({ url, duration }) => [
      `#EXTINF:${duration.toFixed(3)},`,
      `${base}${url}`,
    ]),
    ...(live ? [] : ['#EXT-X-ENDLIST']),
    '',
  ].join('\n');
}

/** The routes of signed URLs. They are registered before the API key check. */
export function recordingBytes(options: Options): Middleware {
  const router = new Router<State>({ sensitive: true, strict: true });
  router.get(PART_ROUTE, async (ctx) => {
    const isStart = String(ctx.params['name']).endsWith('.mp4');
    await send(ctx, options, isStart ? 'video/mp4' : 'video/iso.segment');
  });
  router.get(FILE_ROUTE, async (ctx) => {
    await send(ctx, options, 'video/mp4', `${ctx.params['id']}-${ctx.params['name']}`);
  });
  return router.routes() as unknown as Middleware;
}

/** With a file name it is a download; players play it all the same. */
async function send(
  ctx: Context,
  { clients, gatewayToken }: Options,
  type: string,
  filename?: string,
): Promise<void> {
  const call = callAsGateway(ctx, gatewayToken)(FILE_TRANSFER_TIMEOUT_MS);
  const read = (offset: number, length: number) =>
    clients.blobs.readBlob({ blobId: '', url: ctx.url, offset, length }, call);
  const size = await sizeOf(read(0, 0));
  const range = rangeOf(ctx.get('range'), size);
  // Set only now: a refusal is answered with JSON.
  ctx.set({
    'content-type': type,
    'accept-ranges': 'bytes',
    'cache-control': 'private, no-store',
    // the URL is the credential, and players are embedded in other sites
    'access-control-allow-origin': '*',
    ...(filename && { 'content-disposition': `attachment; filename="${filename}"` }),
  });
  if (range === 'none') {
    ctx.status = 416;
    ctx.set('content-range', `bytes */${size}`);
    ctx.length = 0;
    return;
  }
  const { from, length } = range ?? { from: 0, length: size };
  ctx.status = range === undefined ? 200 : 206;
  if (range) ctx.set('content-range', `bytes ${from}-${from + length - 1}/${size}`);
  if (ctx.method === 'GET') ctx.body = await begun(read(from, length));
  ctx.length = length;
}

async function sizeOf(parts: AsyncIterable<{ size?: number | undefined }>): Promise<number> {
  for await (const { size } of parts) if (size !== undefined) return size;
  throw new Error('core sent no size');
}

/**
 * The range of a Range header: undefined for the whole file, also for ranges that may be ignored
 * (several ranges, other units); `none` when unsatisfiable. Pure.
 */
export function rangeOf(
  header: string,
  size: number,
): { from: number; length: number } | 'none' | undefined {
  const [, first = '', last = ''] = RANGE.exec(header.trim()) ?? [];
  if (first === '' && last === '') return undefined;
  const from = first === '' ? Math.max(size - Number(last), 0) : Number(first);
  const to = first === '' || last === '' ? size - 1 : Math.min(Number(last), size - 1);
  if (first !== '' && last !== '' && Number(last) < Number(first)) return undefined;
  return from > to ? 'none' : { from, length: to - from + 1 };
}

function bytes(
  [operationId, summary]: readonly [string, string],
  types: readonly string[],
  names: readonly string[],
) {
  const content = Object.fromEntries(types.map((type) => [type, BINARY]));
  return {
    get: {
      operationId,
      summary,
      description: 'No API key is needed. Range supports a single range of bytes.',
      security: [],
      parameters: [...names.map(inPath), ...SIGNED],
      responses: {
        200: { description: 'The bytes.', content },
        206: { description: 'The requested range.', content },
        416: { description: 'The range is not satisfiable.' },
        default: FAILURE,
      },
    },
  };
}

/** The OpenAPI descriptions of these routes. */
export const RECORDINGS_PATHS = {
  '/v1/sessions/{id}/replays/{pageId}': {
    get: {
      operationId: 'getReplay',
      summary: 'An HLS playlist of one page of a session: fragmented MP4, links valid for 6 h.',
      parameters: [ID, inPath('pageId')],
      responses: answers('The playlist.', { [PLAYLIST]: TEXT }),
    },
  },
  '/v1/sessions/{id}/replays/{pageId}/{name}': bytes(
    ['getReplayPart', 'One part of a replay, by the URL in its playlist.'],
    ['video/mp4', 'video/iso.segment'],
    ['id', 'pageId', 'name'],
  ),
  '/v1/sessions/{id}/recording/downloads/{name}': bytes(
    ['getRecordingFile', 'The whole video of one page, by its downloadUrl.'],
    ['video/mp4'],
    ['id', 'name'],
  ),
};
