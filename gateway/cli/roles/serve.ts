/**
 * `tabern serve`: core and gateway in this process, the runner as a child process. starting ->
 * serving -> draining -> ending -> ended. While it drains, at most for TABERN_DRAIN_S, no new runs
 * are accepted; all else is served until the runner's work has ended. The end takes at most 30 s:
 * the gateway accepts no new requests while the runner ends; core stops last, because both need it.
 * `tabern upgrade` lets a newer program take over as a child process of the first one
 * (process/successors.ts), which ends with it.
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { replaceFile } from '../../../proto/common/durable.ts';
import type { Env } from '../../../proto/common/env.ts';
import { type Log, openLog } from '../../../proto/common/log.ts';
import { endTracing, startTracing } from '../../../proto/common/tracing.ts';
import { aborted, type ProcessEnd } from '../../../proto/drain/end.ts';
import { type GatewayConfig, gatewayConfig, gatewayTokenOf } from '../../config.ts';
import { Exit, exitAtOnce, openEnd } from '../../process/exit-codes.ts';
import { openPredecessor, type Predecessor } from '../../process/predecessor.ts';
import { prepareRunner } from '../../process/runner-process.ts';
import { openSuccessors, type Successors } from '../../process/successors.ts';
import { notUpgraded, type Program, type Upgraded } from '../../process/upgrade-ipc.ts';
import { VERSION } from '../../process/version.ts';
import { announce, ready } from './announce.ts';
import { checkProgram } from './check.ts';
import type { Service } from './service.ts';

/** Runs until a shutdown signal or a refusal of the runner. Throws Exit when it cannot start. */
export async function serve(env: NodeJS.ProcessEnv): Promise<number> {
  const predecessor = openPredecessor(env);
  try {
    return await run(env, predecessor);
  } catch (error) {
    predecessor?.failed(error);
    throw error;
  } finally {
    predecessor?.leave();
  }
}

async function run(env: Env, predecessor: Predecessor | undefined): Promise<number> {
  const config = gatewayConfig(env);
  const log = openLog({ role: 'serve', level: config.logLevel });
  let further = exitAtOnce;
  const end = openEnd(config.drainS, log, () => further());
  await startTracing();
  let replace: ((program: Program) => Promise<Upgraded>) | undefined;
  const upgrade = async (body: unknown): Promise<Upgraded> => {
    if (end.draining.aborted) return notUpgraded('the service drains or ends');
    return (await replace?.(programOf(body))) ?? notUpgraded('the service is starting');
  };
  // a gateway that gave up reloads nothing, and by default the signal ends a process
  if (config.tls ?? config.coreTls) process.on('SIGHUP', () => undefined);
  const onFurther = (own: () => void) => {
    further = own;
  };
  const given = { config, log, end, upgrade, onFurther };
  const code = predecessor
    ? await serveNext(env, { ...given, predecessor, use: (own) => (replace = own) })
    : await serveFirst(env, { ...given, use: (own) => (replace = own) });
  await endTracing();
  return code;
}

type Given = {
  config: GatewayConfig;
  log: Log;
  end: ProcessEnd;
  upgrade: (body: unknown) => Promise<Upgraded>;
  use(replace: (program: Program) => Promise<Upgraded>): void;
  /** Of a signal after `end.ending`; it ends the process otherwise. */
  onFurther(own: () => void): void;
};

async function serveFirst(env: Env, given: Given): Promise<number> {
  const { config, log, end } = given;
  const service = await openFirst(env, given);
  const first = { ...holderOf(service), dataDir: config.dataDir };
  const successors = openSuccessors(first, log);
  given.use(successors.upgrade);
  const over = new AbortController();
  const shown = announceReady(env, { config, service, signal: over.signal });
  const causes = [service.runner.refused, service.broken, successors.taken];
  const code = await Promise.race([aborted(end.draining), ...causes]);
  over.abort();
  await Promise.all([shown, successors.settle()]);
  if (successors.newest() !== undefined)
    return await followNewest(service, { ...given, successors });
  successors.close();
  await endService(service, { code, log, end });
  return code ?? 0;
}

/** The runner loads its modules beside those of core and of the gateway. */
async function openFirst(env: Env, given: Given): Promise<Service> {
  const prepared = prepareRunner({ ...env, TABERN_DATA: given.config.dataDir });
  try {
    const { openService } = await import('./service.ts');
    return await openService(env, { ...given, prepared });
  } catch (error) {
    prepared.kill('SIGKILL'); // it has not begun to work
    throw error;
  }
}

/** Serves as a child of the first process, which orders its end, too. */
async function serveNext(env: Env, given: Given & { predecessor: Predecessor }): Promise<number> {
  const { config, log, end, predecessor } = given;
  await checkProgram(env);
  const { openService } = await import('./service.ts');
  const port = await predecessor.takeOver({ version: VERSION, dataDir: config.dataDir });
  const runnerId = randomUUID();
  const service = await openService(env, { ...given, runnerId }, port);
  given.use(predecessor.upgrade);
  let isRetired = false;
  await worksOrThrows(service);
  // not before: the old runner goes on under its own id if this one does not work
  replaceFile(join(config.dataDir, 'keys', 'runner.id'), `${runnerId}\n`);
  predecessor.serving({
    ...holderOf(service),
    retire() {
      isRetired = true;
      service.retire();
    },
    end: end.end,
    drain: end.drain,
  });
  log.info({ url: service.gateway.url, version: VERSION }, 'took over');
  const causes = [service.runner.refused, service.broken, service.retired.then(() => 0)];
  const code = await Promise.race([aborted(end.draining), ...causes]);
  if (isRetired) {
    await Promise.race([service.retired, aborted(end.ending)]);
    await service.close();
    return 0;
  }
  await endService(service, { code, log, end, predecessor });
  return code ?? 0;
}

/** The old one serves again unless the new runner works: its Chrome may be another one. */
async function worksOrThrows({ runner, close }: Service): Promise<void> {
  const code = await Promise.race([runner.ready, runner.refused]);
  if (code === undefined) return;
  await close();
  throw new Exit(code, 'its runner cannot work: the log of the service has more');
}

function holderOf({ port, giveUp, resume, retire, retired, close }: Service) {
  return { port, giveUp, resume, retire, retired, end: close };
}

type Ending = { code: number | undefined; log: Log; end: ProcessEnd; predecessor?: Predecessor };

async function endService(
  service: Service,
  { code, log, end, predecessor }: Ending,
): Promise<void> {
  if (code === undefined && !end.ending.aborted) {
    service.core.drain();
    service.gateway.refuseReadiness();
    const drained = Promise.all([service.runner.drain(), predecessor?.alone]);
    await Promise.race([drained, aborted(end.ending)]);
  }
  log.info({ code }, 'ending');
  predecessor?.endEarlier();
  await service.close(predecessor?.alone);
}

/**
 * The first process when a newer one serves: it passes signals on, and ends with the newest. One
 * that the newest receives while it ends is the last: all end at once.
 */
async function followNewest(
  service: Service,
  { successors, log, end, onFurther }: Given & { successors: Successors },
): Promise<number> {
  onFurther(() => void successors.kill().then((isKilled) => isKilled && exitAtOnce()));
  const pass = async (signal: NodeJS.Signals): Promise<void> => {
    if (signal !== 'SIGHUP') {
      successors.close();
      await successors.settle();
    }
    successors.newest()?.kill(signal);
  };
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    process.on(signal, () => void pass(signal));
  }
  if (end.draining.aborted) {
    // begun while the newer one took over: its time is that of this process
    successors.newest()?.send({ type: 'drain' });
    void aborted(end.ending).then(() => successors.end());
  }
  const code = await successors.ended();
  log.info({ code }, 'the newest process of the service has ended');
  await service.close();
  return code;
}

async function announceReady(
  env: Env,
  { config, service, signal }: { config: GatewayConfig; service: Service; signal: AbortSignal },
): Promise<void> {
  const { core, gateway } = service;
  const gatewayToken = gatewayTokenOf(config);
  if (!(await ready(core.clients, { gatewayToken, signal }))) return;
  const address = config.publicUrl ?? gateway.url;
  announce({ address, first: core.firstStart, hasConsole: gateway.hasConsole }, env);
}

/** Throws for a body that `tabern upgrade` does not send. */
function programOf(body: unknown): Program {
  const { command, npm } = Object(body) as Partial<Program>;
  const isCommand = Array.isArray(command) && command.every((word) => typeof word === 'string');
  if (!isCommand || command.length === 0) throw new Error('no command');
  return { command, ...(typeof npm === 'string' && { npm }) };
}
