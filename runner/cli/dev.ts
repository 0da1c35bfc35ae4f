/**
 * `tabern dev <entry>`: runs a project's functions on this machine, and again with each change of
 * its sources. What cannot be built is said, and the next change is waited for.
 * building -> serving (what was built last) <-> broken (503, and what is wrong) -> ended by Ctrl-C.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigError, type Env } from '../../proto/common/env.ts';
import { INVOCATION_TIMEOUT_DEFAULT_S } from '../../proto/common/limits.ts';
import { BuildFailure } from '../builds/build-failure.ts';
import { readManifests } from '../builds/manifest.ts';
import { startBuildWorker } from '../builds/worker/worker.ts';
import type { Bundle } from '../functions/bundle-cache.ts';
import type { InvokeOutcome } from '../functions/hosts.ts';
import { openNone } from '../jail/backends/none.ts';
import type { SessionParams } from '../sessions/browser-settings.ts';
import { logText, plain } from './api.ts';
import { type Options, runHere, type Terminal } from './config.ts';
import { type DevMachine, openDevMachine } from './dev-machine.ts';
import { type DevOutcome, openDevServer } from './dev-server.ts';
import { entryOf } from './publish.ts';
import { watchSources } from './watch.ts';

/** Source: proto/spec/functions.md 9. */
const HOST_DEFAULT = '127.0.0.1';
const PORT_DEFAULT = 14_113;
const PORT_MAX = 65_535;

type Config = SessionParams & { timeout?: number };
/** What the newest sources define. */
type Built = { bundle: Bundle; functions: ReadonlyMap<string, Config> };

/** Exit code 0 when it was ended. */
export function run(argument: string, options: Options): Promise<number> {
  const asked = new AbortController();
  const end = () => asked.abort();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, end);
  return runHere((terminal, env) =>
    dev({ argument, options, signal: asked.signal }, terminal, env),
  );
}

type Job = { argument: string; options: Options; signal: AbortSignal };

async function dev({ argument, options, signal }: Job, terminal: Terminal, env: Env) {
  const where = place(options);
  const entrypoint = await entryOf(argument, terminal.cwd);
  await using machine = await openDevMachine(env);
  const project = openProject({ root: terminal.cwd, entrypoint }, { machine, terminal, signal });
  await using server = await openDevServer(where, {
    problem: () => project.problem,
    has: (name) => project.built?.functions.has(name) === true,
    run: (name, params, gone) => invoke({ name, params, gone }, { project, machine, terminal }),
  });
  await using _watch = await watchSources(terminal.cwd, {
    except: machine.dataDir,
    onChange: () => void project.build(),
    onLost: (message) => terminal.say(`warning: ${message}`),
  });
  await project.build();
  terminal.print(`listening on ${server.url}`);
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve));
  terminal.say('ending');
  await project.ended();
  return 0;
}

function place(options: Options): { host: string; port: number } {
  const { host, port } = options;
  const number = port === undefined ? PORT_DEFAULT : Number(port);
  if (!Number.isInteger(number) || number < 1 || number > PORT_MAX) {
    throw new ConfigError(`--port must be a whole number from 1 to ${PORT_MAX}`);
  }
  return { host: typeof host === 'string' ? host : HOST_DEFAULT, port: number };
}

// --- the project's sources ---

type Project = {
  /** Undefined until something could be built. */
  readonly built: Built | undefined;
  /** What is wrong with the newest sources. */
  readonly problem: string | undefined;
  /** Aborts when the command ends. */
  signal: AbortSignal;
  /** Builds now, or again when a build is under way. */
  build(): Promise<void>;
  ended(): Promise<void>;
};

type With = { machine: DevMachine; terminal: Terminal; signal: AbortSignal };

function openProject(sources: { root: string; entrypoint: string }, deps: With): Project {
  const { machine, terminal, signal } = deps;
  const { say } = terminal;
  const files: string[] = [];
  let built: Built | undefined;
  let problem: string | undefined = 'the functions are being built; try again';
  let building: Promise<void> | undefined;
  let isStale = false;
  let count = 0;

  async function once(): Promise<void> {
    count += 1;
    const outFile = join(machine.runDir, `dev-${count}.mjs`);
    files.push(outFile);
    try {
      const began = performance.now();
      const before = problem === undefined ? built : undefined;
      built = await loaded({ ...sources, outFile }, deps, before);
      problem = undefined;
      if (built.functions === before?.functions) return; // no source of it was changed
      const names = [...built.functions.keys()].map(plain).join(', ');
      say(`${count === 1 ? 'built' : 'built again'} in ${sinceMs(began)} ms: ${names}`);
    } catch (error) {
      // whatever it is: the next change may mend it, and the server stays up for that
      if (signal.aborted) return;
      const before = problem;
      problem = error instanceof Error ? error.message : String(error);
      if (problem === before) return; // said once: the output may be a file of the project
      for (const line of problem.split('\n')) say(`error: ${plain(line)}`);
      say('waiting for a change');
    } finally {
      // a run that has begun has links of its own
      for (const old of files.splice(0, files.length - 2)) await rm(old, { force: true });
    }
  }

  return {
    get built() {
      return built;
    },
    get problem() {
      return problem;
    },
    signal,
    build() {
      isStale = true;
      building ??= (async () => {
        while (isStale && !signal.aborted) {
          isStale = false;
          await once();
        }
        building = undefined;
      })();
      return building;
    },
    ended: async () => building,
  };
}

async function loaded(
  paths: { root: string; entrypoint: string; outFile: string },
  { machine, terminal, signal }: With,
  before: Built | undefined,
): Promise<Built> {
  const { hosts } = machine;
  const { sha256, warnings } = await bundled(paths, machine, signal);
  const bundle = { path: paths.outFile, sha256 };
  if (before?.bundle.sha256 === sha256) return { bundle, functions: before.functions };
  for (const warning of warnings) terminal.say(`warning: ${plain(warning)}`);
  const found = await hosts.introspect({
    projectId: 'dev',
    bundle,
    onLine: (line) => terminal.say(logText(line)),
    signal,
  });
  signal.throwIfAborted();
  if (!found.ok) throw new BuildFailure(found.code, found.message);
  const functions = readManifests(found.manifests).map(
    ({ name, sessionConfigJson }) => [name, JSON.parse(sessionConfigJson || '{}')] as const,
  );
  return { bundle, functions: new Map(functions) };
}

/** Throws with all that is wrong with them. They are the user's own: no jail. */
async function bundled(
  { root, entrypoint, outFile }: { root: string; entrypoint: string; outFile: string },
  { runDir, log }: DevMachine,
  signal: AbortSignal,
) {
  const said: { level: string; message: string }[] = [];
  const lines = { line: (level: string, message: string) => void said.push({ level, message }) };
  const jail = openNone(log, runDir);
  await using worker = await startBuildWorker({ project: root, jail, lines, log, signal });
  try {
    const { sha256 } = await worker.bundle(entrypoint, outFile);
    return { sha256, warnings: said.map(({ message }) => message) };
  } catch (error) {
    const errors = said.filter(({ level }) => level === 'error').map(({ message }) => message);
    throw errors.length > 0 ? new Error(errors.join('\n')) : error;
  }
}

// --- a run ---

async function invoke(
  { name, params, gone }: { name: string; params: object; gone: AbortSignal },
  { project, machine, terminal }: { project: Project; machine: DevMachine; terminal: Terminal },
): Promise<DevOutcome> {
  const { say } = terminal;
  const { built, signal: ending } = project;
  const session = built?.functions.get(name);
  if (!built || !session) throw new Error('no such function');
  // ended with the run: what listens to AbortSignal.timeout lives until its time is over
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
      for (const line of lines) say(`  ${logText(line)}`);
    },
    warn: (message) => say(`  warning: ${plain(message)}`),
    signal: AbortSignal.any([gone, ending, late.signal]),
  });
  const outcome = await running.finally(() => clearTimeout(timer));
  if (outcome.type === 'result') {
    say(`${plain(name)} completed in ${sinceMs(began)} ms`);
    return { json: outcome.json };
  }
  const failure = failureOf(outcome, late.signal.aborted);
  say(`${plain(name)} failed after ${sinceMs(began)} ms`);
  for (const line of failure.stackTrace) say(`  ${plain(line)}`);
  return { failure };
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

function sinceMs(began: number): string {
  return (performance.now() - began).toFixed(0);
}
