/**
 * The start of a runner under `tabern serve`: it loads its modules while the parent process opens
 * core and the gateway.
 */
import { isStartAsked, PREPARED_BY, type StartAsked } from '../../proto/common/runner-ipc.ts';

/**
 * Waits for the `start` message of the parent process, and returns the environment with core's
 * address and the runner's id. The process exits when its channel closes, or when another message
 * arrives first: it has no work. Messages after `start` are emitted again when the caller has its
 * own listeners.
 */
export async function untilStarted(env: NodeJS.ProcessEnv): Promise<NodeJS.ProcessEnv> {
  const preparedBy = env[PREPARED_BY];
  delete env[PREPARED_BY];
  if (preparedBy === undefined || process.send === undefined) return env;
  if (!process.connected) leave(); // the parent process ended while the modules were loaded
  // another program that starts runners, such as a supervisor, may have a channel too
  if (preparedBy !== String(process.ppid)) return env;
  const { promise, resolve } = Promise.withResolvers<NodeJS.ProcessEnv>();
  const later: unknown[][] = [];
  let isStarted = false;
  const receive = (...message: unknown[]): void => {
    const [first] = message;
    if (isStarted) later.push(message);
    else if (!isStartAsked(first)) leave();
    else resolve(startedWith(env, first));
    isStarted = true;
  };
  process.on('message', receive).once('disconnect', leave);
  const started = await promise;
  process.off('disconnect', leave);
  // Node gives all messages that have arrived to the listeners of that moment
  setImmediate(() => {
    process.off('message', receive);
    for (const message of later) process.emit('message', ...(message as [unknown, undefined]));
  });
  return started;
}

function startedWith(env: NodeJS.ProcessEnv, { core, runnerId }: StartAsked): NodeJS.ProcessEnv {
  const started = { ...env, TABERN_CORE: core ?? env['TABERN_CORE'] };
  return runnerId === undefined ? started : { ...started, TABERN_RUNNER_ID: runnerId };
}

function leave(): never {
  process.exit(0);
}
