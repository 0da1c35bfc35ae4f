/**
 * The side of a newer service: it takes over from the process that runs, and obeys the first
 * process of the service from then on (successors.ts).
 */
import { DRAIN_MAX_S } from '../../proto/drain/end.ts';
import {
  type FromSuccessor,
  type Holder,
  notUpgraded,
  type Port,
  type Program,
  SUCCEEDS,
  type ToSuccessor,
  type Upgraded,
} from './upgrade-ipc.ts';

type Served = Holder & {
  drain(seconds: number, why: string): void;
  end(why: string): void;
};

export type Predecessor = {
  /** Settles when the port and the database are this process's to use. */
  takeOver(able: { version: string; dataDir: string }): Promise<Port>;
  /** It serves; `service` does what the first process orders. */
  serving(service: Served): void;
  /** The start failed. */
  failed(error: unknown): void;
  /** Settles when no earlier process has work. */
  alone: Promise<void>;
  /** Earlier processes have no time left for theirs. */
  endEarlier(): void;
  upgrade(program: Program): Promise<Upgraded>;
  /** The connection no longer keeps this process alive. */
  leave(): void;
};

/** Undefined for a service that starts on its own. */
export function openPredecessor(env: NodeJS.ProcessEnv): Predecessor | undefined {
  const isNext = env[SUCCEEDS] === String(process.ppid) && process.send !== undefined;
  delete env[SUCCEEDS];
  if (!isNext) return undefined;
  const alone = Promise.withResolvers<void>();
  const taken = Promise.withResolvers<Port>();
  let port: Port | undefined;
  let upgraded: ((answer: Upgraded) => void) | undefined;
  let service: Served | undefined;
  const send = (message: FromSuccessor, handle?: Port): void => {
    process.send?.(message, handle as never, undefined, () => undefined); // fails when it has ended
  };
  const failed = (error: unknown): void => send({ type: 'failed', why: String(messageOf(error)) });
  const serveAgain = (given: Port): void => {
    service?.resume(given).then(
      () => send({ type: 'serving' }),
      (error) => {
        failed(error);
        service?.end('the service cannot be opened again');
      },
    );
  };
  const receive = (message: ToSuccessor, handle: unknown): void => {
    switch (message.type) {
      case 'port':
        port = handle as Port;
        send({ type: 'port' }, port);
        break;
      case 'take-over':
        taken.resolve(port as Port);
        break;
      case 'give-up':
        service?.giveUp().then(() => send({ type: 'given-up' }), failed);
        break;
      case 'resume':
        serveAgain(handle as Port);
        break;
      case 'retire':
        service?.retire();
        break;
      case 'drain':
        service?.drain(DRAIN_MAX_S, 'the first process of the service drains');
        break;
      case 'end':
        service?.end('the first process of the service ends');
        break;
      case 'alone':
        alone.resolve();
        break;
      case 'upgraded':
        upgraded?.(message);
        upgraded = undefined;
        break;
    }
  };
  const disconnected = (): void => {
    if (service === undefined) process.exit(1);
    service.end('the first process of the service has ended');
    alone.resolve();
    upgraded?.({ isDone: false, says: 'the service ends' });
    upgraded = undefined;
  };
  process.on('message', receive).once('disconnect', disconnected);
  return {
    alone: alone.promise,
    failed,
    takeOver(able) {
      send({ type: 'able', ...able });
      return taken.promise;
    },
    serving(own) {
      service = own;
      send({ type: 'serving' });
    },
    endEarlier: () => send({ type: 'ending' }),
    async upgrade(program) {
      if (upgraded !== undefined) return notUpgraded('another upgrade is in progress');
      const answer = Promise.withResolvers<Upgraded>();
      upgraded = answer.resolve;
      send({ type: 'upgrade', program });
      return await answer.promise;
    },
    leave() {
      process.off('message', receive).off('disconnect', disconnected);
      if (process.connected) process.disconnect();
    },
  };
}

function messageOf(error: unknown): unknown {
  return error instanceof Error ? error.message : error;
}
