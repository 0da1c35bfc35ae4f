/**
 * `tabern dev <entry>`: runs a project's functions on this machine and builds them again after each
 * change of the sources. A failed build is printed; the next change starts another one.
 * building -> serving (the newest build) <-> broken (503 with the build errors) -> ended by Ctrl-C.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigError, type Place } from '../../proto/common/env.ts';
import { INVOCATION_TIMEOUT_DEFAULT_S } from '../../proto/common/limits.ts';
import { steadyClock } from '../../proto/common/steady-clock.ts';
import { plain, tenantText } from '../../proto/terminal/text.ts';
import { BuildFailure } from '../builds/build-failure.ts';
import { readManifests } from '../builds/manifest.ts';
import { startBuildWorker } from '../builds/worker/worker.ts';
import type { Bundle } from '../functions/bundle-cache.ts';
import type { InvokeOutcome } from '../functions/hosts.ts';
import { openNone } from '../jail/backends/none.ts';
import type { SessionParams } from '../sessions/browser-settings.ts';
import { logText } from './api.ts';
import { type Options, runHere, signalOf, type Terminal } from './config.ts';
import { type DevMachine, openDevMachine } from './dev/machine.ts';
import { openDevPages } from './dev/pages.ts';
import {
  type DevOutcome,
  type DevRecord,
  type DevRuns,
  type DevStep,
  openDevRuns,
} from './dev/runs.ts';
import { type DevWanted, openDevServer, urlOf } from './dev/server.ts';
import { watchSources } from './dev/watch.ts';
import { entryOf } from './publish.ts';

const PORT_MAX = 65_535;

type Config = SessionParams & { timeout?: number };
/** A bundle and the functions that it defines. */
type Built = { bundle: Bundle; functions: ReadonlyMap<string, Config> };
type Deps = { entrypoint: string; machine: DevMachine; terminal: Terminal; signal: AbortSignal };
/** Where runs are recorded, and the address of the page of one; without a page there is none. */
type Recorder = { runs: DevRuns; addressOf(id: string): string | undefined };

/** Exit code 0 when a signal ended the command. `pages`: the folder of the built console. */
export function run(argument: string, options: Options, pages: URL): Promise<number> {
  const signal = signalOf('SIGINT', 'SIGTERM', 'SIGHUP');
  return runHere(async (terminal, env) => {
    const where = placeOf(options);
    const entrypoint = await entryOf(argument, terminal.cwd);
    await using machine = await openDevMachine(env);
    return await dev(where, { entrypoint, machine, terminal, signal }, pages);
  });
}

async function dev(where: Place, deps: Deps, folder: URL): Promise<number> {
  const { machine, terminal, signal } = deps;
  const project = new Project(deps);
  const runs = openDevRuns(steadyClock());
  const names = () => [...(project.built?.functions.keys() ?? [])];
  const pages = openDevPages(folder, { runs, names });
  const addressOf = (id: string) => pages && urlOf(where) + pages.pathOf(id);
  await using server = await openDevServer(where, {
    problem: () => project.problem,
    has: (name) => project.built?.functions.has(name) === true,
    run: (wanted, gone) => recorded({ ...wanted, gone, runs, addressOf }, project.built, deps),
    pages,
  });
  await using _watch = await watchSources(terminal.cwd, {
    except: machine.dataDir,
    onChange: () => void project.build(),
    onLost: (message) => terminal.say(`warning: ${message}`),
  });
  await project.build();
  terminal.print(`listening on ${server.url}`);
  if (pages) terminal.say(`runs: ${server.url}/console`);
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve));
  terminal.say('ending');
  await project.building;
  return 0;
}

/** The command table has the defaults. */
function placeOf({ host, port }: Options): Place {
  const number = Number(port);
  if (!Number.isInteger(number) || number < 1 || number > PORT_MAX) {
    throw new ConfigError(`--port must be a whole number from 1 to ${PORT_MAX}`);
  }
  return { host: String(host), port: number };
}

// --- the project's sources ---

class Project {
  /** Undefined until a build succeeds. */
  built: Built | undefined;
  /** Why the newest sources cannot be used. */
  problem: string | undefined = 'the functions are being built; try again';
  building: Promise<void> | undefined;
  readonly #deps: Deps;
  readonly #files: string[] = [];
  #isStale = false;
  #count = 0;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Builds now, or again after the build in progress. */
  build(): Promise<void> {
    this.#isStale = true;
    this.building ??= this.#buildWhileStale();
    return this.building;
  }

  async #buildWhileStale(): Promise<void> {
    while (this.#isStale && !this.#deps.signal.aborted) {
      this.#isStale = false;
      await this.#buildOnce();
    }
    this.building = undefined;
  }

  async #buildOnce(): Promise<void> {
    const { machine, terminal, signal } = this.#deps;
    this.#count += 1;
    const outFile = join(machine.runDir, `dev-${this.#count}.mjs`);
    this.#files.push(outFile);
    const began = performance.now();
    const { problem } = this;
    try {
      const before = problem === undefined ? this.built : undefined;
      this.built = await loaded(outFile, this.#deps, before);
      this.problem = undefined;
      if (this.built.functions === before?.functions) return; // the bundle is unchanged
      const names = [...this.built.functions.keys()].map(plain).join(', ');
      const verb = this.#count === 1 ? 'built' : 'built again';
      terminal.say(`${verb} in ${sinceMs(began)} ms: ${names}`);
    } catch (error) {
      // of any kind: the next change may fix it, and the server stays up for that
      if (signal.aborted) return;
      this.problem = error instanceof Error ? error.message : String(error);
      if (this.problem === problem) return; // printed once: the output may be a file of the project
      for (const line of shown(this.problem)) terminal.say(`error: ${line}`);
      terminal.say('waiting for a change');
    } finally {
      // an invocation in progress has its own link to its bundle
      for (const old of this.#files.splice(0, this.#files.length - 2)) {
        await rm(old, { force: true });
      }
    }
  }
}

async function loaded(outFile: string, deps: Deps, before: Built | undefined): Promise<Built> {
  const { machine, terminal, signal } = deps;
  const { sha256, warnings } = await bundled(outFile, deps);
  const bundle = { path: outFile, sha256 };
  if (before?.bundle.sha256 === sha256) return { bundle, functions: before.functions };
  for (const warning of warnings) terminal.say(`warning: ${shown(warning).join('\n')}`);
  const found = await machine.hosts.introspect({
    projectId: 'dev',
    bundle,
    onLine: (line) => terminal.say(logText(line, process.stderr)),
    signal,
  });
  signal.throwIfAborted();
  if (!found.ok) throw new BuildFailure(found.code, found.message);
  const functions = readManifests(found.manifests).map(
    ({ name, sessionConfigJson }) => [name, JSON.parse(sessionConfigJson || '{}')] as const,
  );
  return { bundle, functions: new Map(functions) };
}

/** Throws with all errors of the sources. They are the user's own, so no jail is needed. */
async function bundled(outFile: string, { entrypoint, machine, terminal, signal }: Deps) {
  const { runDir, log } = machine;
  const logged: { level: string; message: string }[] = [];
  const lines = { line: (level: string, message: string) => void logged.push({ level, message }) };
  const jail = openNone(log, runDir);
  await using worker = await startBuildWorker({ project: terminal.cwd, jail, lines, log, signal });
  try {
    const { sha256 } = await worker.bundle(entrypoint, outFile);
    return { sha256, warnings: logged.map(({ message }) => message) };
  } catch (error) {
    const errors = logged.filter(({ level }) => level === 'error').map(({ message }) => message);
    throw errors.length > 0 ? new Error(errors.join('\n')) : error;
  }
}

// --- an invocation ---

type Asked = DevWanted & { gone: AbortSignal };

/** With the address of its page, when it has ended. */
async function recorded(
  { runs, addressOf, ...asked }: Asked & Recorder,
  built: Built | undefined,
  deps: Deps,
): Promise<DevOutcome> {
  const record = runs.begin(asked.name, asked.params);
  asked.begun?.(record.id);
  let ended: Ended | undefined;
  try {
    ended = await invoke(asked, built, { ...deps, add: record.add });
    return ended.outcome;
  } finally {
    const message = 'it could not run; the terminal of tabern dev has the reason';
    const failure = { message, type: 'Error', stackTrace: [message] };
    record.end(ended?.outcome ?? { failure }, ended?.steps ?? []);
    const address = addressOf(record.id);
    if (address !== undefined) deps.terminal.say(`  ${address}`);
  }
}

type Ended = { outcome: DevOutcome; steps: DevStep[] };

async function invoke(
  { name, params, gone }: Asked,
  built: Built | undefined,
  { machine, terminal: { say }, signal, add }: Deps & Pick<DevRecord, 'add'>,
): Promise<Ended> {
  const session = built?.functions.get(name);
  if (!built || !session) throw new Error('no such function');
  // not AbortSignal.timeout: its listeners stay in memory until the time is over
  const late = new AbortController();
  const seconds = session.timeout ?? INVOCATION_TIMEOUT_DEFAULT_S;
  const timer = setTimeout(() => late.abort(), seconds * 1_000);
  const began = performance.now();
  say(`${plain(name)} started`);
  const running = machine.run({
    bundle: built.bundle,
    functionName: name,
    params,
    session,
    onLines(lines) {
      add(lines);
      for (const line of lines) say(`  ${logText(line, process.stderr)}`);
    },
    warn: (message) => say(`  warning: ${plain(message)}`),
    signal: AbortSignal.any([gone, signal, late.signal]),
  });
  const { outcome, steps } = await running.finally(() => clearTimeout(timer));
  if (outcome.type === 'result') {
    say(`${plain(name)} completed in ${sinceMs(began)} ms`);
    return { outcome: { json: outcome.json }, steps };
  }
  const failure = failureOf(outcome, late.signal.aborted);
  say(`${plain(name)} failed after ${sinceMs(began)} ms`);
  for (const line of shown(failure.stackTrace.join('\n'))) say(`  ${line}`);
  return { outcome: { failure }, steps };
}

function failureOf(outcome: Exclude<InvokeOutcome, { type: 'result' }>, isLate: boolean) {
  if (outcome.type === 'aborted') {
    const message = isLate ? 'it did not end within its time limit' : 'it was ended';
    return { message, type: isLate ? 'TimedOut' : 'Cancelled', stackTrace: [message] };
  }
  const { name, message, stack } = outcome;
  const type = name || 'Error';
  return { message, type, stackTrace: (stack || `${type}: ${message}`).split('\n') };
}

/** Lines of the user's code and errors. */
function shown(text: string): string[] {
  return tenantText(text, process.stderr).split('\n');
}

function sinceMs(began: number): string {
  return (performance.now() - began).toFixed(0);
}
