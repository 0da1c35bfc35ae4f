/**
 * One newer service as a child process, from its start to its exit, as the first process of the
 * service sees it.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { EXIT } from './exit-codes.ts';
import {
  type FromSuccessor,
  type Holder,
  type Port,
  type Program,
  SUCCEEDS,
  type ToSuccessor,
  type Upgraded,
} from './upgrade-ipc.ts';

/** In milliseconds. Ours: its check starts a Chrome. */
const ABLE_MS = 300_000;
/** In milliseconds. Ours: a migration of a large database takes minutes. */
const SERVING_MS = 900_000;
/** In milliseconds. Ours: 22 s for deliveries, 10 for requests and 5 for core's calls. */
const GIVEN_UP_MS = 90_000;

export type Successor = Holder & {
  /** The check of the new program has passed. */
  able(): Promise<{ version: string; dataDir: string }>;
  /** Gives it the port, and returns a copy, which accepts nothing. */
  share(port: Port): Promise<Port>;
  takeOver(): Promise<void>;
  kill(signal: NodeJS.Signals): void;
  send(message: ToSuccessor): void;
  /** Settles with its exit code. */
  ended: Promise<number>;
};

type Orders = {
  /** It was asked to upgrade the service. */
  upgrade(program: Program): Promise<Upgraded>;
  /** Earlier processes have no time left. */
  endEarlier(): void;
};

/** Starts the program with this process's own words, settings and streams. */
export function startSuccessor({ command, npm }: Program, orders: Orders): Successor {
  const [program = '', ...words] = command;
  const child = spawn(program, [...process.execArgv, ...words, ...process.argv.slice(2)], {
    env: {
      ...environmentOfStart(),
      ...(npm === undefined ? {} : { npm_execpath: npm }),
      [SUCCEEDS]: String(process.pid),
    },
    stdio: ['ignore', 1, 2, 'ipc'],
  });
  const ended = exitOf(child);
  const send = (message: ToSuccessor, port?: Port): void => {
    if (child.connected) child.send(message, port as never, {}, () => undefined);
  };
  child.on('message', (message: FromSuccessor) => {
    if (message.type === 'ending') orders.endEarlier();
    if (message.type !== 'upgrade') return;
    void orders.upgrade(message.program).then((answer) => send({ type: 'upgraded', ...answer }));
  });
  const answer = (type: FromSuccessor['type'], ms: number) => answerOf(child, { type, ended, ms });
  return {
    ended,
    send,
    kill: (signal) => void child.kill(signal),
    async able() {
      const [message] = await answer('able', ABLE_MS);
      if (message.type !== 'able') throw new Error('no answer');
      return message;
    },
    async share(port) {
      const shared = answer('port', ABLE_MS);
      send({ type: 'port' }, port);
      const [, copy] = await shared;
      return copy as Port;
    },
    async takeOver() {
      const serving = answer('serving', SERVING_MS);
      send({ type: 'take-over' });
      await serving;
    },
    async giveUp() {
      const given = answer('given-up', GIVEN_UP_MS);
      send({ type: 'give-up' });
      await given;
    },
    async resume(port) {
      const serving = answer('serving', SERVING_MS);
      send({ type: 'resume' }, port);
      await serving;
    },
    retire: () => send({ type: 'retire' }),
  };
}

/** Variables that were set later, as those of the settings file, are read anew. */
function environmentOfStart(): Record<string, string> {
  const pairs = readFileSync('/proc/self/environ', 'utf8').split('\0').filter(Boolean);
  return Object.fromEntries(
    pairs.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]),
  );
}

async function exitOf(child: ChildProcess): Promise<number> {
  const [code] = await once(child, 'exit').catch((error: Error) => {
    process.stderr.write(`tabern: cannot start the new program: ${error.message}\n`);
    return [EXIT.failed];
  });
  return typeof code === 'number' ? code : EXIT.failed;
}

type Wanted = { type: FromSuccessor['type']; ended: Promise<number>; ms: number };

/** Throws when the program fails, ends or does not answer in time. */
async function answerOf(
  child: ChildProcess,
  { type, ended, ms }: Wanted,
): Promise<[FromSuccessor, unknown]> {
  const { promise, resolve, reject } = Promise.withResolvers<[FromSuccessor, unknown]>();
  const receive = (message: FromSuccessor, handle: unknown): void => {
    if (message.type === 'failed') reject(new Error(message.why));
    if (message.type === type) resolve([message, handle]);
  };
  const late = () => reject(new Error(`the new program did not answer within ${ms / 1_000} s`));
  const timer = setTimeout(late, ms);
  child.on('message', receive);
  void ended.then((code) => {
    const why = `the new program ended with exit code ${code}: the log of the service has more`;
    reject(new Error(why));
  });
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    child.off('message', receive);
  }
}
