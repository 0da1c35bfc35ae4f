/**
 * The bytes of downloads: GET /v1/downloads/{id} returns the bytes of one download when Accept
 * requests them, and its metadata otherwise. GET /v1/sessions/{id}/downloads returns all downloads
 * of a session as a zip, created while it is read, or a page of their list when Accept has JSON
 * and no zip. Format: proto/spec/sessions.md 9.
 */
import { extname } from 'node:path';
import { Readable } from 'node:stream';
import type { FileRegistry } from '@bufbuild/protobuf';
import type { RouterContext, RouterMiddleware } from '@koa/router';
import yazl from 'yazl';
import { FILE_TRANSFER_TIMEOUT_MS } from '../../../proto/common/limits.ts';
import { must } from '../../../proto/common/must.ts';
import {
  type Download,
  type GetDownloadResponse,
  ListDownloadsRequest,
} from '../../../proto/gen/tabern/v1/downloads.pb.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import type { CallOptions } from '../../../proto/rpc/local.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import type { State } from '../../http/auth.ts';
import { begun } from '../../http/blob-stream.ts';
import { messageOf } from '../../rest/messages.ts';
import { render } from '../../rest/operations.ts';
import { readQuery } from '../../rest/transcode.ts';
import { answers, BINARY, inPath, json, query, refer } from '../openapi-parts.ts';

export const DOWNLOAD_ROUTE = '/v1/downloads/:id';
/** For links of the console. */
export const DOWNLOAD_CONTENT_ROUTE = '/console/api/v1/downloads/:id/content';
export const DOWNLOADS_ROUTE = '/v1/sessions/:id/downloads';
/** Page size of a list. Source: proto/spec/rest.md 2. */
const PAGE = 100;
/** Files of one zip. Ours: a session has at most 1,000 (runner/sessions/downloads.ts). */
const FILES_MAX = 10_000;
const BYTES = 'application/octet-stream';
const ZIP = 'application/zip';

export function getDownload(clients: Clients, registry: FileRegistry): RouterMiddleware<State> {
  const name = 'tabern.v1.GetDownloadResponse';
  const output = must(registry.getMessage(name), name);
  return async (ctx) => {
    const call = must(ctx.state.call, 'a key');
    const id = String(ctx.params['id']);
    const found = await clients.downloads.getDownload({ id }, call());
    ctx.vary('Accept');
    if (ctx.accepts('application/json', BYTES) !== BYTES) {
      ctx.body = render(output, found, 'download');
      return;
    }
    await sendContent(ctx, clients, found);
  };
}

/** GET /console/api/v1/downloads/{id}/content: the bytes for a link, whatever its Accept. */
export function getDownloadContent(clients: Clients): RouterMiddleware<State> {
  return async (ctx) => {
    const call = must(ctx.state.call, 'a key');
    const id = String(ctx.params['id']);
    await sendContent(ctx, clients, await clients.downloads.getDownload({ id }, call()));
  };
}

async function sendContent(
  ctx: RouterContext<State>,
  clients: Clients,
  { blobId, download }: GetDownloadResponse,
): Promise<void> {
  const call = must(ctx.state.call, 'a key');
  const { filename, size } = must(download, 'download');
  const body = await begun(clients.blobs.readBlob({ blobId }, call(FILE_TRANSFER_TIMEOUT_MS)));
  ctx.attachment(filename);
  ctx.type = BYTES; // not by its name: foreign content must not render as a page of this origin
  ctx.length = size;
  ctx.body = body;
}

export function getSessionDownloads(
  clients: Clients,
  registry: FileRegistry,
): RouterMiddleware<State> {
  const messageNamed = (name: string) => must(registry.getMessage(name), name);
  const input = messageNamed('tabern.v1.ListDownloadsRequest');
  const output = messageNamed('tabern.v1.ListDownloadsResponse');
  const filters = input.fields.filter(({ name }) => name !== 'session_id');
  return async (ctx) => {
    const call = must(ctx.state.call, 'a key');
    const sessionId = String(ctx.params['id']);
    ctx.vary('Accept');
    // a client that accepts anything gets the zip, as before there was a list
    if (!ctx.accepts(ZIP) && ctx.accepts('application/json')) {
      const query = readQuery(new URLSearchParams(ctx.querystring), filters);
      const given: object = messageOf(input, { ...query, sessionId });
      const wanted = ListDownloadsRequest.fromPartial(given);
      ctx.body = render(output, await clients.downloads.listDownloads(wanted, call()), undefined);
      return;
    }
    const downloads = await listAll(clients, sessionId, call);
    const { body, size } = zipOf(downloads, (id) => contentOf(clients, id, call));
    ctx.attachment(`${sessionId}.zip`);
    ctx.type = ZIP;
    ctx.length = size;
    ctx.body = body;
  };
}

type MakeCall = (timeoutMs?: number) => CallOptions;

/** Oldest first. A download added meanwhile shifts the pages; none is included twice. */
async function listAll(
  { downloads }: Clients,
  sessionId: string,
  call: MakeCall,
): Promise<Download[]> {
  const all = new Map<string, Download>();
  for (let offset = 0; offset < FILES_MAX; offset += PAGE) {
    const wanted = { sessionId, limit: PAGE, offset, createdAfter: undefined };
    const page = await downloads.listDownloads({ ...wanted, createdBefore: undefined }, call());
    for (const download of page.downloads) all.set(download.id, download);
    if (page.downloads.length < PAGE) break;
  }
  return [...all.values()].reverse();
}

async function contentOf(
  { downloads, blobs }: Clients,
  id: string,
  call: MakeCall,
): Promise<Readable> {
  const options = call(FILE_TRANSFER_TIMEOUT_MS);
  const { blobId } = await downloads.getDownload({ id }, options);
  return begun(blobs.readBlob({ blobId }, options));
}

/**
 * Stored without compression: the size is known in advance, and most files are already compressed.
 */
function zipOf(downloads: readonly Download[], open: (id: string) => Promise<Readable>) {
  const zip = new yazl.ZipFile();
  const body = zip.outputStream as Readable;
  zip.on('error', (error: Error) => body.destroy(error));
  // the file being added, which a pipe does not close with its target: it holds a call of core
  let current: Readable | undefined;
  body.once('close', () => current?.destroy());
  const taken = new Set<string>();
  for (const { id, filename, createdAt, size } of downloads) {
    const mtime = must(createdAt, 'time');
    const options = { mtime, mode: 0o100644, compress: false, size };
    zip.addReadStreamLazy(nameIn(taken, filename, mtime.getTime()), options, (done) => {
      const failed = new Readable({ read() {} });
      open(id).then(
        (stream) => {
          current = stream.on('error', (error) => body.destroy(error));
          if (body.destroyed) stream.destroy();
          else done(null, stream);
        },
        (error: unknown) => done(error, failed),
      );
    });
  }
  let size = 0;
  zip.end(undefined, (...said: unknown[]) => {
    size = Number(said[0]);
  });
  if (!(size > 0)) throw new Fault('INTERNAL', 'An unexpected error occurred.');
  return { body, size };
}

/**
 * Adds the time before the extension, increased until the name is unique; without colons, since
 * names in a zip must not begin with a drive letter.
 */
function nameIn(taken: Set<string>, filename: string, at: number): string {
  const ending = extname(filename);
  const base = filename.slice(0, filename.length - ending.length);
  for (let ms = at; ; ms += 1) {
    const name = `${base}-${ms}${ending}`.replaceAll(':', '_');
    if (taken.has(name)) continue;
    taken.add(name);
    return name;
  }
}

/** The OpenAPI description of the zip; the contract describes the metadata. */
export const DOWNLOADS_PATHS = {
  '/v1/sessions/{sessionId}/downloads': {
    get: {
      operationId: 'getSessionDownloads',
      summary: 'All downloads of a session as a zip, or a page of their list as JSON.',
      description:
        'File names in the zip contain the time, in ms since 1970, before the extension. Accept: ' +
        'application/json returns a page, with the filters of GET /v1/downloads.',
      parameters: [
        inPath('sessionId'),
        query('limit', 'JSON: the size of the page, 1 to 100; 20 when absent.'),
        query('offset', 'JSON: the number of results to skip; 0 when absent.'),
      ],
      responses: answers('The zip, or the page.', {
        [ZIP]: BINARY,
        ...json(refer('ListDownloadsResponse')),
      }),
    },
  },
};
/** The additional answer of GET /v1/downloads/{id}. */
export const DOWNLOAD_CONTENT = { [BYTES]: BINARY };
