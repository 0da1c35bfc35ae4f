/** Uploads as the published clients make them, and a core that keeps them. */

import type { CreateBuildRequest } from '../../../../proto/gen/tabern/v1/functions.pb.ts';
import { Fault } from '../../../../proto/rpc/errors.ts';
import { KEY, openGateway } from '../../sessions/runner.ts';

export const BUILDS_PATH = '/v1/functions/builds';
const AT = new Date('2026-05-03T12:53:37.151Z');

/** A core that keeps whole blobs and counts those that were cut off. */
export async function openKeeping() {
  const kept = {
    blobs: [] as { kind: string; size: number }[],
    cut: [] as string[],
    builds: [] as CreateBuildRequest[],
  };
  const gateway = await openGateway({
    blobs: {
      async writeBlob(parts, call) {
        if (call.metadata['x-svc-api-key'] !== KEY) {
          throw new Fault('API_KEY_INVALID', 'Invalid API key.');
        }
        let kind = '';
        let size = 0;
        try {
          for await (const { part } of parts) {
            if (part?.$case === 'header') kind = part.value.kind;
            if (part?.$case === 'chunk') size += part.value.length;
          }
        } catch (error) {
          kept.cut.push((error as Fault).reason);
          throw error;
        }
        kept.blobs.push({ kind, size });
        return { blobId: `blob-${kept.blobs.length}`, size, sha256: '' };
      },
    },
    functions: {
      async createBuild(request) {
        kept.builds.push(request);
        return {
          build: {
            id: 'b',
            projectId: 'p',
            request: { entrypoint: request.entrypoint, functionNames: [] },
            status: 'PENDING',
            createdAt: AT,
            updatedAt: AT,
            startedAt: AT,
            endedAt: undefined,
            expiresAt: AT,
            builtFunctions: [],
            cause: undefined,
          },
        };
      },
    },
  });
  return { gateway, kept };
}

/** One upload with these parts, in this order. */
export async function send(url: string, parts: [string, string | Blob][], key = KEY) {
  const form = new FormData();
  for (const [name, value] of parts) {
    if (typeof value === 'string') form.append(name, value);
    else form.append(name, value, `${name}.tar.gz`);
  }
  const answer = await fetch(url + BUILDS_PATH, {
    method: 'POST',
    headers: { 'x-bb-api-key': key },
    body: form,
  });
  return { status: answer.status, json: (await answer.json()) as Record<string, unknown> };
}

/** An archive of that many zeros. */
export const archive = (bytes: number) => new Blob([new Uint8Array(bytes)]);

/** The beginning of a part that never ends. */
export const part = (name: string) =>
  `--b\r\ncontent-disposition: form-data; name="${name}"; filename="a"\r\n\r\nsome bytes`;

/** The head of an upload and the beginning of its archive. */
export function unended(hostname: string): string {
  return [
    `POST ${BUILDS_PATH} HTTP/1.1`,
    `host: ${hostname}`,
    `x-svc-api-key: ${KEY}`,
    'content-type: multipart/form-data; boundary=b',
    'content-length: 100000',
    '',
    part('archive'),
  ].join('\r\n');
}
