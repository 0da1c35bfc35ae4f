/**
 * The environment of attacks: real handlers in real hosts in one launcher's jail, a machine around
 * them, and a bystander, a run of another project that lasts as long as the field.
 */
import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openLog } from '../../../../proto/common/log.ts';
import { cidrList } from '../../../../proto/network/public-addresses.ts';
import { hostEgress } from '../../../../runner/functions/host-sockets.ts';
import { type Hosts, type InvokeOutcome, openHosts } from '../../../../runner/functions/hosts.ts';
import { node } from '../../../../runner/functions/runtime.ts';
import type { Jail } from '../../../../runner/jail/jail.ts';
import { openJail } from '../../../../runner/jail/open.ts';
import { moduleOf } from '../../host/bundle.ts';
import { type Aim, type Attack, type Launcher, NEXT, PRELUDE } from './attack.ts';
import { type Machine, openMachine } from './machine.ts';

export const log = openLog({ role: 'test', level: 'silent' });
/** Ours: far above the needs of any contained attack. */
const RUN_LIMIT_MS = 120_000;
/** What an ended attack prints once it is under way. */
const BEGUN = 'begun';

/** The bystander's secret, in two parts: an attack searches for the whole. */
const VICTIM = ['a-secret', 'of-the-victim'].join('-');

export type Relay = Parameters<Hosts['invoke']>[0]['relay'];
export type Ran = { outcome: InvokeOutcome; lines: string[] };
export type Field = AsyncDisposable & {
  jail: Jail;
  machine: Machine;
  /** Runs the attack in the project; on request aborts the run after its first output. */
  attack(attack: Attack, options?: { project?: string; isEnded?: boolean }): Promise<Ran>;
  /** The run after it: of the same bundle where that can be loaded. */
  next(attack: Attack): Promise<Ran>;
  /** Ends the bystander, and gives how it fared: `aborted` when nothing has happened to it. */
  bystander(): Promise<string>;
};

/** `relay`: where a handler's connect URL leads; nowhere when absent. */
export async function openField(
  level: Launcher | 'none',
  relay?: Relay,
  runtime = node(),
): Promise<Field> {
  await using opening = new AsyncDisposableStack();
  const machine = opening.use(await openMachine());
  const dir = await mkdtemp(join(tmpdir(), 'field-'));
  opening.defer(() => rm(dir, { recursive: true, force: true }));
  const jail = await openJail({ sandbox: level, log });
  const openEgress = hostEgress({ allow: cidrList([]), log });
  const hosts = openHosts({ jail, runtime, runDir: dir, spares: 1, openEgress, log });
  opening.use(hosts);
  let count = 0;
  const run = async (source: string, options: RunOptions): Promise<Ran> => {
    const sha256 = createHash('sha256').update(source).digest('hex');
    const path = join(dir, `${sha256}.mjs`);
    await writeFile(path, source);
    count += 1;
    const over = new AbortController();
    const lines: string[] = [];
    const { project, name, params, endOn } = options;
    const signals = [AbortSignal.timeout(RUN_LIMIT_MS), over.signal, options.signal ?? over.signal];
    const outcome = await hosts.invoke({
      invocationId: options.id ?? `attack-${count}`,
      projectId: project,
      bundle: { path, sha256 },
      functionName: name,
      paramsJson: JSON.stringify(params),
      secrets: options.secrets ?? [],
      sessionId: 'session',
      signingKey: options.key ?? `key-${count}`,
      region: 'us-west-2',
      relay: relay ?? { serve: (_, socket) => void socket.destroy() },
      onLines(more) {
        lines.push(...more.map(({ message }) => message));
        options.onLine?.();
        if (lines.some((line) => line === endOn)) over.abort();
      },
      signal: AbortSignal.any(options.isEndless === true ? signals.slice(1) : signals),
    });
    return { outcome, lines };
  };
  const end = new AbortController();
  const key = 'K'.repeat(43);
  const { promise: standing, resolve } = Promise.withResolvers<void>();
  const bystanding = run(
    moduleOf(`f: async () => { console.log('here'); await new Promise(() => {}) }`),
    {
      project: 'bystander',
      id: 'victim',
      key,
      name: 'f',
      params: {},
      secrets: [{ secretKey: 'VICTIM', value: VICTIM }],
      signal: end.signal,
      onLine: resolve,
      isEndless: true,
    },
  );
  await Promise.race([standing, bystanding]);
  const params: Aim = { ...machine.aim, runDir: dir, key };
  const kept = opening.move();
  return {
    jail,
    machine,
    attack(attack, { project = 'attacker', isEnded = false } = {}) {
      const wanted = { project, name: 'f', params };
      return run(sourceOf(attack), isEnded ? { ...wanted, endOn: BEGUN } : wanted);
    },
    next(attack) {
      const source =
        attack.source === undefined ? sourceOf(attack) : sourceOf({ ...attack, body: '' });
      return run(source, { project: 'attacker', name: 'next', params });
    },
    async bystander() {
      end.abort();
      const { outcome } = await bystanding;
      return outcome.type === 'failure' ? outcome.message : outcome.type;
    },
    async [Symbol.asyncDispose]() {
      end.abort();
      await kept.disposeAsync();
    },
  };
}

type RunOptions = {
  project: string;
  name: string;
  params: object;
  secrets?: Parameters<Hosts['invoke']>[0]['secrets'];
  id?: string;
  key?: string;
  endOn?: string;
  onLine?(): void;
  signal?: AbortSignal;
  isEndless?: boolean;
};

function sourceOf({ source, body }: Attack): string {
  if (source !== undefined && body === undefined) return source;
  return PRELUDE + moduleOf(`f: async (ctx, params) => { ${body} }, next: ${NEXT}`);
}
