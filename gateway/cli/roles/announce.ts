/**
 * The message that a service prints on stdout when it is ready: its address and a first command.
 */
import type { Env } from '../../../proto/common/env.ts';
import { pause } from '../../../proto/common/pause.ts';
import { shellWord } from '../../../proto/common/shell-word.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import { ownCommand } from '../own-command.ts';

type First = { projectId: string; apiKey: string; isPreset: boolean };

const PRESET = 'TABERN_API_KEY';
/** In milliseconds, between two checks of readiness. */
const POLL_MS = 100;
const CHECK_TIMEOUT_MS = 2_000;

/** Settles when all components of GET /readyz are healthy; false when `signal` aborts before. */
export async function ready(
  { health }: Pick<Clients, 'health'>,
  { gatewayToken, signal }: { gatewayToken: string; signal: AbortSignal },
): Promise<boolean> {
  const metadata = { authorization: `Bearer ${gatewayToken}` };
  while (!signal.aborted) {
    const options = { metadata, timeoutMs: CHECK_TIMEOUT_MS };
    const answer = await health.checkHealth({}, options).catch(() => undefined);
    if (answer?.checks.every(({ fault }) => fault === '')) return true;
    await pause(POLL_MS, signal);
  }
  return false;
}

type Announced = {
  /** Core's address is a socket. */
  address: string;
  first: First | undefined;
  hasConsole: boolean;
};

/** A quickstart until the key was used; later the addresses only. */
export function announce({ address, first, hasConsole }: Announced, env: Env): void {
  const page = hasConsole ? `${address}/console` : undefined;
  if (first === undefined) {
    process.stdout.write(`${address}\n${page === undefined ? '' : `console: ${page}\n`}`);
    return;
  }
  // a key that the operator configured is not printed
  const file = env[`${PRESET}_FILE`]?.trim();
  const preset = file ? `$(cat ${shellWord(file)})` : `$${PRESET}`;
  const key = first.isPreset ? preset : first.apiKey;
  const note = first.isPreset ? 'from your settings' : 'shown until it is used: keep it';
  const command = ownCommand({ path: env['PATH'] ?? '', cwd: process.cwd() });
  const tryIt = `Try it:

  TABERN_API_KEY=${key} TABERN_BASE_URL=${address} ${command} try

`;
  const isCore = !address.startsWith('http');
  const gateway = `Clients connect to a gateway:

  ${command} gateway --core ${address}

`;
  process.stdout.write(`tabern is ready.

  ${isCore ? 'core      ' : 'base URL  '}  ${address}
${page === undefined ? '' : `  console     ${page}\n`}  project id  ${first.projectId}
  API key     ${key}   (${note})

${isCore ? gateway : tryIt}`);
}
