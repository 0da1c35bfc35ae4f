/**
 * GET /console/api/v1/operator/backup: a backup of the installation as a tar, which the browser
 * saves. It is without the master key. A failure before the first byte is an error as of any
 * request; a later one cuts the connection, so that no incomplete file looks whole.
 */
import { Readable } from 'node:stream';
import type { RouterMiddleware } from '@koa/router';
import { must } from '../../../proto/common/must.ts';
import type { CreateBackupResponse } from '../../../proto/gen/tabern/v1/operators.pb.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import type { State } from '../../http/auth.ts';

/** As `tabern backup`: of a large installation over a slow link. */
const BACKUP_TIMEOUT_MS = 6 * 3_600_000;

export function downloadBackup(clients: Pick<Clients, 'operators'>): RouterMiddleware<State> {
  return async (ctx) => {
    const call = must(ctx.state.call, 'a key')(BACKUP_TIMEOUT_MS);
    const parts = clients.operators.createBackup({ withMasterKey: false }, call);
    const stream = parts[Symbol.asyncIterator]();
    const first = await stream.next(); // throws a refusal, which is an answer
    const start = first.done ? undefined : first.value.part;
    const { totalBytes } = must(start?.$case === 'start' ? start.value : undefined, 'a start');
    ctx.set('content-disposition', 'attachment; filename="tabern-backup.tar"');
    ctx.set('cache-control', 'no-store');
    ctx.type = 'application/x-tar';
    ctx.length = totalBytes;
    const body = Readable.from(chunksOf(stream), { objectMode: false });
    // also when nothing was read, as of HEAD: core takes one backup at a time, and keeps its files
    body.once('close', () => void stream.return?.().catch(() => undefined));
    ctx.body = body;
  };
}

async function* chunksOf(stream: AsyncIterator<CreateBackupResponse>): AsyncGenerator<Uint8Array> {
  for (let next = await stream.next(); !next.done; next = await stream.next()) {
    if (next.value.part?.$case === 'chunk') yield next.value.part.value;
  }
}
