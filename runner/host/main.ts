/**
 * The function host: runs in the jail, one per project, holds no credentials of ours. It connects
 * to the supervisor's control socket, sends ready, then runs the commands it receives; when that
 * socket closes it exits, whatever its threads do. Argv: control socket, CDP socket, CDP port (0:
 * any free one), egress socket or '-', functions directory, default isolation of functions. Where
 * unix sockets are not allowed, control is the number of a descriptor, the CDP socket is '-', and
 * the supervisor listens on the CDP port.
 */
import { connect, Socket } from 'node:net';
import { join } from 'node:path';
import process from 'node:process';
import { handlerEnv } from './config.ts';
import { openLoopback } from './loopback.ts';
import {
  encode,
  FrameReader,
  type FromHost,
  readToHost,
  TO_HOST_MAX_BYTES,
  type ToHost,
} from './messages.ts';
import { type Run, startRun } from './run.ts';
import { openThreads, type Threads } from './threads.ts';
import type { Isolation } from './worker.ts';

/** The port of HTTP_PROXY; see runner/functions/hosts.ts. */
const EGRESS_PORT = 3128;
async function hostMain(): Promise<void> {
  const [control = '', cdp = '', cdpPort = '0', egress = '-', functions = '', said] =
    process.argv.slice(2);
  const isolation = said === 'fresh' ? said : 'warm';
  const threads = openThreads(handlerEnv(), isolation);
  const port = cdp === '-' ? Number(cdpPort) : await openLoopback(Number(cdpPort), cdp);
  if (egress !== '-') await openLoopback(EGRESS_PORT, egress);
  serve(control, { threads, functions, isolation, cdpPort: port });
}

type Host = { threads: Threads; functions: string; isolation: Isolation; cdpPort: number };

function serve(path: string, host: Host): void {
  const runs = new Map<string, Run>();
  const isDescriptor = /^\d+$/.test(path);
  const socket = isDescriptor ? new Socket({ fd: Number(path) }) : connect(path);
  const reader = new FrameReader(TO_HOST_MAX_BYTES);
  const send = (message: FromHost): void => void socket.write(encode(message));
  socket.on('data', (chunk) => {
    for (const body of reader.push(chunk)) onMessage(readToHost(body));
  });
  socket.on('close', () => process.exit(0));
  socket.on('error', () => process.exit(1));
  send({ type: 'ready', cdpPort: host.cdpPort });

  function onMessage(message: ToHost): void {
    const { id } = message;
    if (message.type === 'abort') {
      runs.get(id)?.abort();
      return;
    }
    const file = join(host.functions, `${message.bundle}.mjs`);
    const run = startRun(
      host.threads,
      { id, bundle: message.bundle, task: { ...taskOf(message, file), isolation: host.isolation } },
      send,
    );
    runs.set(id, run);
    void run.done.then(() => runs.delete(id));
  }
}

function taskOf(message: Exclude<ToHost, { type: 'abort' }>, file: string) {
  if (message.type === 'introspect') return { type: message.type, file } as const;
  const { type, functionName, paramsJson, secretsJson, session, id, region } = message;
  const invocation = { id, region };
  return { type, file, functionName, paramsJson, secretsJson, session, invocation } as const;
}

await hostMain();
