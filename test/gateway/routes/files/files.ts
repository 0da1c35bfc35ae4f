/** A core of downloads, extensions and sessions for the gateway's tests. */
import { rmSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import type { Session } from '../../../../proto/gen/tabern/v1/sessions.pb.ts';
import { Fault, notFound } from '../../../../proto/rpc/errors.ts';
import { tempDirectory } from '../../../support/temp.ts';
import { KEY } from '../../sessions/runner.ts';

export const AT = new Date('2026-05-03T12:53:37.151Z');
export const SESSION = '0196f7aa-0000-7000-8000-000000000001';

/** A session as core returns it. */
export function sessionOf(more: Partial<Session> = {}): Session {
  return {
    id: SESSION,
    projectId: 'p',
    region: 'us-west-2',
    status: 'RUNNING',
    proxyBytes: 0,
    createdAt: AT,
    updatedAt: AT,
    startedAt: AT,
    endedAt: undefined,
    expiresAt: AT,
    keepAlive: false,
    contextId: undefined,
    userMetadata: undefined,
    connectUrl: undefined,
    seleniumRemoteUrl: undefined,
    signingKey: 'the-key',
    labels: [],
    ...more,
  };
}

export type Stored = { id: string; filename: string; bytes: Buffer };

/** Handlers of downloads with these files, the newest last. */
export function downloadsOf(files: readonly Stored[]) {
  const toProto = ({ id, filename, bytes }: Stored) => ({
    id,
    sessionId: SESSION,
    filename,
    mimeType: 'text/plain',
    size: bytes.length,
    checksum: 'c'.repeat(64),
    createdAt: AT,
  });
  return {
    downloads: {
      async listDownloads({ sessionId, limit = 20, offset = 0 }: Page) {
        if (sessionId !== SESSION) throw notFound('Session', sessionId);
        const newest = [...files].reverse().slice(offset, offset + limit);
        return { downloads: newest.map(toProto), total: files.length, limit, offset };
      },
      async getDownload({ id }: { id: string }) {
        const file = files.find((one) => one.id === id);
        if (!file) throw notFound('Download', id);
        return { download: toProto(file), blobId: `blob-${id}` };
      },
    },
    blobs: {
      async *readBlob({ blobId }: { blobId: string }) {
        const file = files.find(({ id }) => `blob-${id}` === blobId);
        if (!file) throw notFound('Blob', blobId);
        for (let from = 0; from < file.bytes.length; from += 65_536) {
          yield { chunk: file.bytes.subarray(from, from + 65_536) };
        }
      },
    },
  };
}

type Page = { sessionId: string; limit?: number | undefined; offset?: number | undefined };

/** A core that keeps whole extensions. */
export function extensionsOf(refuse?: Fault) {
  const kept: { kind: string; size: number; fileName?: string }[] = [];
  const handlers = {
    blobs: {
      async writeBlob(parts: AsyncIterable<{ part?: { $case: string; value: never } }>, call: Who) {
        if (call.metadata['x-svc-api-key'] !== KEY) {
          throw new Fault('API_KEY_INVALID', 'Invalid API key.');
        }
        const blob = { kind: '', size: 0 };
        for await (const { part } of parts) {
          if (part?.$case === 'header') blob.kind = (part.value as { kind: string }).kind;
          else if (part) blob.size += (part.value as Buffer).length;
        }
        kept.push(blob);
        return { blobId: 'b', size: blob.size, sha256: '' };
      },
    },
    extensions: {
      async createExtension({ fileName }: { fileName: string }) {
        if (refuse) throw refuse;
        Object.assign(kept.at(-1) ?? {}, { fileName });
        const times = { createdAt: AT, updatedAt: AT };
        return { extension: { id: 'e', ...times, fileName, projectId: 'p' } };
      },
    },
  };
  return { handlers, kept };
}

type Who = { metadata: Readonly<Record<string, string>> };

/** A session server that stores uploads, or answers with `refuse`. */
export async function openRunner(refuse?: (request: IncomingMessage) => number | undefined) {
  const dir = tempDirectory();
  const path = join(dir.path, 'runner.sock');
  const kept: { url: string; bytes: Buffer }[] = [];
  const cut: string[] = [];
  let seen = 0;
  const server = createServer(async (request, response) => {
    request.once('data', () => {
      seen += 1;
    });
    const url = request.url ?? '';
    const status = refuse?.(request);
    if (status !== undefined) {
      response.writeHead(status).end(JSON.stringify({ message: `refused with ${status}` }));
      return;
    }
    try {
      kept.push({ url, bytes: await buffer(request) });
      response.end('{}');
    } catch {
      cut.push(url);
    }
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return {
    address: `unix:${path}`,
    kept,
    cut,
    seen: () => seen,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      rmSync(path, { force: true });
      await dir[Symbol.asyncDispose]();
    },
  };
}
