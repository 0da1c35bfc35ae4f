/**
 * Checks the machine for a runner: its sandbox, a Chrome in it, the runtime of functions. All
 * started processes are ended.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Finding, fail, ok, warn } from '../../proto/common/diagnostics.ts';
import { ConfigError, type Env } from '../../proto/common/env.ts';
import { openLog } from '../../proto/common/log.ts';
import { ChromeNotFound, type Engine, findEngines } from '../browser/find.ts';
import { launchChrome } from '../browser/launch.ts';
import { type Config, NO_TOKEN, readConfig } from '../config.ts';
import { findRuntime, RuntimeNotFound } from '../functions/runtime.ts';
import { canNest } from '../jail/backends/bwrap.ts';
import { findSubtree } from '../jail/cgroups/delegated-subtree.ts';
import { openEgress } from '../jail/egress/egress-proxy.ts';
import { type Jail, JailError } from '../jail/jail.ts';
import { openJail } from '../jail/open.ts';
import { probeChrome } from './browser-self-test.ts';
import { makeTempDir, sweepTemp } from './stale-runs.ts';

const log = openLog({ role: 'runner', level: 'silent' });

/** Runs the independent checks one after another. */
export async function* checkMachine(env: Env): AsyncGenerator<Finding> {
  let config: Config;
  try {
    config = readConfig({ ...NO_TOKEN, ...env });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    yield fail('settings', error.message, '`tabern config` shows what is set, and where');
    return;
  }
  const jail = await openJail({ sandbox: config.sandbox, log }).catch((error: unknown) => {
    if (error instanceof JailError) return error;
    throw error;
  });
  yield sandbox(jail);
  yield cgroups();
  yield await runtime(config);
  if (jail instanceof JailError) return;
  await sweepTemp();
  const runDir = await makeTempDir('doctor');
  try {
    yield await chrome(config, jail, runDir);
  } finally {
    await rm(runDir, { recursive: true, force: true, maxRetries: 5 });
  }
}

function sandbox(jail: Jail | JailError): Finding {
  if (jail instanceof JailError) {
    const fix = 'apt install bubblewrap, and allow user namespaces';
    return fail('sandbox', jail.message.split('. ')[0] ?? '', fix);
  }
  if (jail.level !== 'none') return ok('sandbox', jail.level);
  const fix = 'unset TABERN_SANDBOX unless you trust every published line';
  return warn('sandbox', 'off: functions and pages can read this machine', fix);
}

/** Uses the caller's environment; a running service may have another. */
function cgroups(): Finding {
  const found = findSubtree();
  if ('why' in found) return ok('cgroups', `none from here: ${found.why}; memory is watched`);
  return ok('cgroups', found.controllers.join(', '));
}

async function runtime({ engine, env }: Config): Promise<Finding> {
  try {
    const { kind, version } = await findRuntime(engine, env);
    return ok('functions', `run under ${kind} ${version}`);
  } catch (error) {
    if (!(error instanceof RuntimeNotFound)) throw error;
    return fail('functions', error.message, 'install it, or unset TABERN_ENGINE');
  }
}

async function chrome(config: Config, jail: Jail, runDir: string): Promise<Finding> {
  const fix = 'apt install chromium-headless-shell (or chromium), or name yours in TABERN_CHROME';
  let engine: Engine;
  try {
    const program = config.chrome === undefined ? {} : { program: config.chrome };
    const cacheDir = join(runDir, 'chromium');
    const shellOnly = !jail.hasUnixSockets;
    ({ invocations: engine } = await findEngines({ cacheDir, log, shellOnly, ...program }));
  } catch (error) {
    if (!(error instanceof ChromeNotFound)) throw error;
    return fail('chrome', error.message.split(': ')[0] ?? '', fix);
  }
  try {
    const hasSandbox = await canNest(jail, log);
    const egress = openEgress({ allow: config.allow, log, isBrowser: true });
    const one = await launchChrome({ engine, jail, hasSandbox, runDir, egress, log });
    try {
      const product = await probeChrome(one, log);
      const isOwn = engine.program.startsWith(runDir);
      if (!isOwn) return ok('chrome', `${product}, ${engine.program}`);
      return warn('chrome', `${product} of the npm package, which lags behind updates`, fix);
    } finally {
      await one.close();
    }
  } catch (error) {
    return fail('chrome', `${engine.program} does not work: ${(error as Error).message}`, fix);
  }
}
