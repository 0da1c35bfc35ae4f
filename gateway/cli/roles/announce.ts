/**
 * The message that a service prints on stdout when it is ready: its address and a first command.
 */
import { existsSync } from 'node:fs';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pause } from '../../../proto/common/pause.ts';
import type { Clients } from '../../../proto/rpc/services.ts';

type First = { projectId: string; apiKey: string; isPreset: boolean };

/** In milliseconds, between two checks of readiness. */
const POLL_MS = 100;
const CHECK_TIMEOUT_MS = 2_000;
const LAUNCHER = fileURLToPath(new URL('../../tabern.js', import.meta.url));

/** Settles when all components of GET /readyz are healthy; false when `signal` aborts before. */
export async function ready(
  { health }: Pick<Clients, 'health'>,
  { gatewayToken, signal }: { gatewayToken: string; signal: AbortSignal },
): Promise<boolean> {
  const metadata = { authorization: `Bearer ${gatewayToken}` };
  while (!signal.aborted) {
    const asked = health.checkHealth({}, { metadata, timeoutMs: CHECK_TIMEOUT_MS });
    const checks = await asked.then(
      (answer) => answer.checks,
      () => undefined,
    );
    if (checks?.every(({ fault }) => fault === '')) return true;
    await pause(POLL_MS, signal);
  }
  return false;
}

/** A quickstart until the key was used; later the address only. */
export function announce(address: string, first: First | undefined): void {
  if (first === undefined) {
    process.stdout.write(`${address}\n`);
    return;
  }
  // a key that the operator configured is not printed
  const key = first.isPreset ? '$TABERN_API_KEY' : first.apiKey;
  const note = first.isPreset ? 'from your settings' : 'shown until it is used: keep it';
  const tryIt = `Try it:

  TABERN_API_KEY=${key} TABERN_BASE_URL=${address} ${command()} try

`;
  process.stdout.write(`tabern is ready.

  base URL    ${address}
  project id  ${first.projectId}
  API key     ${key}   (${note})

${address.startsWith('http') ? tryIt : ''}`);
}

/** How this program is called from the current directory. */
function command(): string {
  if (process.argv0 === 'tabern') return 'tabern'; // the single executable
  return existsSync(LAUNCHER) ? `node ${relative(process.cwd(), LAUNCHER)}` : 'npx tabern';
}
