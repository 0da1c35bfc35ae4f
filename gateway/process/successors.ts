/**
 * Upgrades of a service, run by its first process. That process stays, so that a supervisor sees
 * one process from the start to the end: when a newer one serves, it keeps its own runner until the
 * sessions have ended, passes signals on, and ends with the exit code of the newest.
 *   check of the new program -> the port is shared -> the old one gives up -> the new one serves
 * If the new program fails before that, the old one serves again.
 */
import type { Log } from '../../proto/common/log.ts';
import { type Successor, startSuccessor } from './successor.ts';
import { type Holder, notUpgraded, type Port, type Program, type Upgraded } from './upgrade-ipc.ts';

/** The service of the first process. */
export type First = Holder & {
  /** Its listening socket. */
  port(): Port;
  dataDir: string;
  /** Settles when its sessions have ended, after `retire`. */
  retired: Promise<void>;
  /** Ends its sessions. */
  end(): Promise<void>;
};

export type Successors = {
  upgrade(program: Program): Promise<Upgraded>;
  /** Settles when a newer process serves. */
  taken: Promise<undefined>;
  /** Settles when no upgrade is in progress; one that has not begun to take over is ended. */
  settle(): Promise<void>;
  /** No upgrade begins any more. */
  close(): void;
  /** The newest process; undefined while this one serves. */
  newest(): Successor | undefined;
  /** The newest process does not wait for the sessions; it ends the others. */
  end(): void;
  /** Kills all newer processes, once the newest has no time left. True when it did. */
  kill(): Promise<boolean>;
  /** Settles with the exit code of the newest process, when all others have ended, too. */
  ended(): Promise<number>;
};

type Serving = {
  ended: Promise<unknown>;
  end(): void;
  kill?(): void;
  /** No earlier process has work. */
  alone?(): void;
};

export function openSuccessors(first: First, log: Log): Successors {
  const taken = Promise.withResolvers<undefined>();
  const over = Promise.withResolvers<number>();
  /** All with work, the oldest first and the newest last. */
  const processes: Serving[] = [];
  let isOver = false;
  let isEnding = false;
  let newest: Successor | undefined;
  /** A copy of the port that accepts nothing, while a newer process serves. */
  let kept: Port | undefined;
  let current: Promise<Upgraded> | undefined;
  let checked: Successor | undefined;

  const add = (serving: Serving): void => {
    processes.push(serving);
    void serving.ended.then(() => {
      processes.splice(processes.indexOf(serving), 1);
      processes[0]?.alone?.();
    });
  };
  /** Of those before `ended`, the exit of one of them. */
  const endBefore = (ended: Promise<unknown>): void => {
    isEnding ||= newest?.ended === ended;
    const at = processes.findIndex((one) => one.ended === ended);
    for (const { end } of processes.slice(0, Math.max(at, 0))) end();
  };
  const follow = (next: Successor): void => {
    const last = newest ?? first;
    newest = next;
    add({
      ended: next.ended,
      end: () => next.send({ type: 'end' }),
      kill: () => next.kill('SIGKILL'),
      alone: () => next.send({ type: 'alone' }),
    });
    last.retire();
    void next.ended.then((code) => {
      if (newest !== next) return;
      isEnding = true;
      over.resolve(code);
    });
    taken.resolve(undefined);
  };
  const share = async (next: Successor): Promise<void> => {
    const last = kept;
    kept = await next.share(last ?? first.port());
    (last as { close?(): void } | undefined)?.close?.();
  };
  /** The old one has given up, or fails to. */
  const takeBack = async (next: Successor, why: string): Promise<Upgraded> => {
    next.kill('SIGKILL');
    await next.ended; // it may hold the lock of the data directory
    const port = kept as Port;
    if (newest === undefined) kept = undefined; // the server closes it with itself
    try {
      await (newest ?? first).resume(port);
      return notUpgraded(why);
    } catch (error) {
      const { message } = error as Error;
      return { isDone: false, says: `the service ends: ${why}; it cannot serve again: ${message}` };
    }
  };
  /** Throws when the new program is not able to. */
  const replace = async (next: Successor): Promise<Upgraded> => {
    checked = next;
    const { version, dataDir } = await next.able();
    if (dataDir !== first.dataDir) {
      throw new Error(`the new program has another data directory: ${dataDir}`);
    }
    await share(next);
    checked = undefined;
    if (isOver) throw new Error('the service ends');
    try {
      await (newest ?? first).giveUp();
      await next.takeOver();
    } catch (error) {
      return await takeBack(next, (error as Error).message);
    }
    // the answer passes through the process that retires
    setImmediate(() => follow(next));
    return { isDone: true, says: `tabern ${version} serves` };
  };
  const run = async (program: Program): Promise<Upgraded> => {
    const next = startSuccessor(program, { upgrade, endEarlier: () => endBefore(next.ended) });
    log.info({ command: program.command }, 'upgrading: checking the new program');
    const answer = await replace(next).catch((error: Error) => {
      next.kill('SIGKILL');
      return notUpgraded(error.message);
    });
    log[answer.isDone ? 'info' : 'warn']({ says: answer.says }, 'the upgrade is over');
    return answer;
  };
  const upgrade = async (program: Program): Promise<Upgraded> => {
    if (isOver) return notUpgraded('the service ends');
    if (current !== undefined) return notUpgraded('another upgrade is in progress');
    current = run(program);
    try {
      return await current;
    } finally {
      current = undefined;
      checked = undefined;
    }
  };
  add({ ended: first.retired, end: () => void first.end() });
  return {
    upgrade,
    taken: taken.promise,
    newest: () => newest,
    close() {
      isOver = true;
    },
    end() {
      isEnding = true;
      newest?.send({ type: 'end' });
    },
    async kill() {
      if (!isEnding) return false;
      const killed = processes.filter(({ kill }) => kill !== undefined);
      for (const { kill } of killed) kill?.();
      await Promise.all(killed.map(({ ended }) => ended));
      return true;
    },
    async settle() {
      checked?.kill('SIGKILL');
      await current;
      await new Promise(setImmediate);
    },
    async ended() {
      const code = await over.promise;
      for (const { end } of processes) end();
      await Promise.all(processes.map(({ ended }) => ended));
      return code;
    },
  };
}
