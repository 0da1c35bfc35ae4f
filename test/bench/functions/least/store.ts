/**
 * The thread of the store of least.ts: one transaction for each message, then its answer. As in
 * core, a lease does not wait for the disk: the acknowledgement after it writes both.
 */
import { parentPort, workerData } from 'node:worker_threads';
import Database from 'better-sqlite3';
import { must } from '../../../../proto/common/must.ts';

export type Step =
  | { op: 'accept'; id: string; params: string }
  | { op: 'lease'; id: string; leaseId: string }
  | { op: 'acknowledge'; leaseId: string }
  | { op: 'complete'; leaseId: string; results: string }
  | { op: 'get'; id: string };
export type Row = { id: string; status: string; params: string; results: string | null };

const db = new Database(workerData as string);
db.pragma('journal_mode = WAL');
db.pragma('synchronous = FULL');
db.exec(`create table invocations (
  id text primary key, leaseId text unique, status text, params text, results text
) strict`);
const statements = {
  accept: db.prepare("insert into invocations values (@id, null, 'PENDING', @params, null)"),
  lease: db.prepare('update invocations set leaseId = @leaseId where id = @id returning *'),
  acknowledge: db.prepare(
    "update invocations set status = 'RUNNING' where leaseId = @leaseId returning *",
  ),
  complete: db.prepare(
    `update invocations set status = 'COMPLETED', results = @results
     where leaseId = @leaseId returning *`,
  ),
  get: db.prepare('select * from invocations where id = @id'),
};
const port = must(parentPort, 'a thread');
port.on('message', ({ number, step }: { number: number; step: Step }) => {
  const { op, ...values } = step;
  const statement = statements[op];
  if (op === 'lease') db.pragma('synchronous = NORMAL');
  const row = statement.reader ? statement.get(values) : statement.run(values) && undefined;
  if (op === 'lease') db.pragma('synchronous = FULL');
  port.postMessage({ number, row });
});
