/** Recorded sessions, as a runner reports them, with helpers to read the result. */
import { newId } from '../../../../core/common/ids.ts';
import { must } from '../../../../proto/common/must.ts';
import type { PageRecording } from '../../../../proto/gen/tabern/v1/runners.pb.ts';
import { addRecording } from '../../../support/core/reports.ts';
import { type Booted, blobParts } from '../../boot.ts';

export type Run = { id: string; leaseId: string };

/** The session of an invocation that is leased. */
export async function run(app: Booted, browserSettings: object = {}): Promise<Run> {
  const config = JSON.stringify({ browserSettings });
  const { sessionId: id } = await app.invoke(await app.publish({ name: newId(), config }));
  const { leaseId } = must((await app.lease('INVOCATION'))[0], 'work');
  return { id, leaseId };
}

export async function end(app: Booted, { leaseId }: Run): Promise<void> {
  const wanted = { leaseId, outcome: undefined, sessionStartMs: app.clock.now(), steps: [] };
  await app.clients.runners.completeInvocation(wanted, app.asRunner);
}

/** Returns the receipt of the bytes. */
export async function write(app: Booted, leaseId: string, bytes: string): Promise<string> {
  const parts = blobParts({ kind: 'RECORDING', leaseId, reported: true }, bytes);
  return must((await app.clients.blobs.writeBlob(parts, app.asRunner)).receipt, 'a receipt');
}

export const newOf = (says: Partial<PageRecording>): PageRecording => {
  const usual = { pageId: 0, startMs: 0, endMs: 0, url: 'https://a.test/', parts: [] };
  return { leaseId: '', complete: false, ...usual, ...says };
};

export const partOf = (receipt: string, number = 0, endMs = 0) => {
  return { number, receipt, startMs: 0, endMs };
};

export const add = (app: Booted, says: Partial<PageRecording>): Promise<void> =>
  addRecording(app, newOf(says));

/** A start and two segments of three seconds each. */
export async function bring(app: Booted, { leaseId }: Run, pageId = 0): Promise<void> {
  const startMs = 100;
  await add(app, { leaseId, pageId, startMs, endMs: startMs });
  for (const [index, texts] of [['start', 'first'], ['second!']].entries()) {
    const parts: PageRecording['parts'] = [];
    for (const text of texts) {
      const number = text === 'start' ? 0 : index + 1;
      const from = startMs + Math.max(number - 1, 0) * 3_000;
      const receipt = await write(app, leaseId, text);
      parts.push({ number, receipt, startMs: from, endMs: startMs + number * 3_000 });
    }
    const endMs = startMs + (index + 1) * 3_000;
    await add(app, { leaseId, pageId, startMs, endMs, parts, complete: index === 1 });
  }
}

export const list = async (app: Booted, id: string) =>
  (await app.clients.sessions.listRecordingDownloads({ id }, app.asProject)).downloads;
export const request = async (app: Booted, id: string) =>
  (await app.clients.sessions.requestRecordingDownloads({ id }, app.asProject)).downloads;
export const replay = (app: Booted, id: string, pageId: string) =>
  app.clients.sessions.getReplay({ id, pageId }, app.asProject);

export async function read(
  app: Booted,
  url: string,
  range: { offset?: number; length?: number } = {},
) {
  let text = '';
  let size: number | undefined;
  for await (const part of app.clients.blobs.readBlob(
    { blobId: '', url, ...range },
    app.asGateway,
  )) {
    size ??= part.size;
    text += Buffer.from(part.chunk).toString('latin1');
  }
  return { text, size };
}
