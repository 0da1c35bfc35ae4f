/**
 * The database thread. It commits all waiting messages as one group, then answers them. Loaded by
 * core/store/thread.ts only.
 */
import {
  type MessagePort,
  parentPort,
  receiveMessageOnPort,
  workerData,
} from 'node:worker_threads';
import type { Database } from 'better-sqlite3';
import { ConfigError } from '../../../proto/common/env.ts';
import { must } from '../../../proto/common/must.ts';
import { crashPoints } from '../crash-points.ts';
import {
  type Answer,
  type FromThread,
  type OpRequest,
  type SnapshotRequest,
  type ThreadOptions,
  type ToThread,
  toPlain,
} from '../messages.ts';
import { Engine, isFull, storageFull } from './engine/group-commit.ts';
import { type OpenDatabase, openDatabase } from './engine/open.ts';
import { snapshotTo } from './engine/snapshot.ts';
import { allOps } from './ops.ts';

/**
 * Operations in one transaction. Beyond 256 a measurement showed no more gain, and the first
 * would wait for the last.
 */
const GROUP_MAX = 256;

start(must(parentPort, 'parent port: this file is a thread, not a program'), workerData);

function start(port: MessagePort, options: ThreadOptions): void {
  const send = (message: FromThread) => port.postMessage(message);
  let open: OpenDatabase;
  let engine: Engine;
  try {
    open = openDatabase(options);
    engine = new Engine(open.db, crashPoints(options.crashAt), allOps);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    send({ kind: 'refused', message: error.message });
    port.close();
    return;
  }
  port.on('message', (first: ToThread) => {
    const group: OpRequest[] = [];
    const snapshots: SnapshotRequest[] = [];
    const closing = gather(port, first, { group, snapshots });
    if (group.length > 0) {
      const outcome = engine.run(group);
      if (outcome.kind === 'fatal') {
        send(outcome);
        port.close();
        return;
      }
      const { syncMs } = engine;
      send({ kind: 'answers', answers: outcome.answers, wakes: outcome.wakes, syncMs });
    }
    // Includes earlier operations; later ones may or may not be included.
    for (const wanted of snapshots) void snapshot(open.db, wanted, send);
    if (closing) {
      open.close();
      send({ kind: 'closed' });
      port.close();
    }
  });
  send({ kind: 'ready', operations: engine.operations });
}

/** Runs between groups. A failure, as on a full disk, affects no other operation. */
async function snapshot(
  db: Database,
  { id, path }: SnapshotRequest,
  send: (message: FromThread) => void,
): Promise<void> {
  const answer = await snapshotTo(db, path).then(
    (value): Answer => ({ id, value }),
    (error: unknown): Answer => ({ id, error: toPlain(isFull(error) ? storageFull() : error) }),
  );
  send({ kind: 'answers', answers: [answer], wakes: [] });
}

/** Adds waiting messages to the group; true when one of them closes the thread. */
function gather(
  port: MessagePort,
  first: ToThread,
  { group, snapshots }: { group: OpRequest[]; snapshots: SnapshotRequest[] },
): boolean {
  let message: ToThread | undefined = first;
  while (message) {
    if (message.kind === 'close') return true;
    if (message.kind === 'snapshot') snapshots.push(message);
    else group.push(message);
    if (group.length >= GROUP_MAX) return false;
    message = receiveMessageOnPort(port)?.message as ToThread | undefined;
  }
  return false;
}
