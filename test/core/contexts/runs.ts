/** Sessions that start from contexts and save them, as a runner makes them. */
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { profileEntries } from '../../../proto/archives/context-reader.ts';
import { must } from '../../../proto/common/must.ts';
import type { ContextWork } from '../../../proto/gen/tabern/v1/runners.pb.ts';
import { sealedText } from '../../support/clients/contexts.ts';
import { tempDirectory } from '../../support/temp.ts';
import { type Booted, blobParts, boot } from '../boot.ts';

export type Run = {
  leaseId: string;
  invocationId: string;
  sessionId: string;
  context?: ContextWork;
};

/** A core with a context, and the short way to start sessions from it and to save them. */
export async function openContext(env = {}, config = '') {
  const app = await boot(env);
  const { clients, asProject, asRunner } = app;
  const created = await clients.contexts.createContext(
    { projectId: undefined, name: undefined },
    asProject,
  );
  const functionId = await app.publish({ name: 'f', config: config.replace('$ID', created.id) });
  const accept = (context: { id: string; persist?: boolean } | undefined) =>
    clients.invocations.invokeFunction(
      {
        functionId,
        params: {},
        sessionCreateParams: { browserSettings: context && { context } } as never,
      },
      asProject,
    );
  const take = async (): Promise<Run> => {
    const { leaseId, item } = must((await app.lease('INVOCATION', 25_000))[0], 'work');
    if (item?.$case !== 'invocation') throw new Error('no invocation');
    const { invocationId, sessionId, context } = item.value;
    return { leaseId, invocationId, sessionId, ...(context && { context }) };
  };
  const write = async (leaseId: string, text: string) => {
    const bytes = await sealedText(created.publicKey, text);
    const parts = blobParts({ kind: 'CONTEXT', leaseId }, bytes);
    return (await clients.blobs.writeBlob(parts, asRunner)).blobId;
  };
  return {
    ...app,
    created,
    accept,
    take,
    write,
    async start(context: { id: string; persist?: boolean } = { id: created.id, persist: true }) {
      await accept(context);
      return take();
    },
    async save(leaseId: string, text: string) {
      const blobId = await write(leaseId, text);
      const answer = await clients.runners.saveContext({ leaseId, blobId }, asRunner);
      return { ...answer, blobId };
    },
    end: (leaseId: string) =>
      clients.runners.completeInvocation(
        { leaseId, outcome: undefined, sessionStartMs: 0, steps: [] },
        asRunner,
      ),
    files: () => readdirSync(join(app.dir, 'blobs')),
  };
}

/** The text in the work's content, decrypted with the keys of the work item as a runner does. */
export async function textOf(
  { clients, asRunner }: Booted,
  { context }: Run,
): Promise<string | null> {
  if (context?.blobId === undefined) return null;
  await using dir = tempDirectory();
  const chunks: Uint8Array[] = [];
  for await (const { chunk } of clients.blobs.readBlob({ blobId: context.blobId }, asRunner)) {
    chunks.push(chunk);
  }
  const path = join(dir.path, 'content');
  writeFileSync(path, Buffer.concat(chunks));
  let text = '';
  for await (const { body } of profileEntries(path, context.keys)) {
    for await (const part of body) text += part;
  }
  return text;
}
