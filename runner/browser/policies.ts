/**
 * Policies of one Chromium: settings that no flag has. Chromium reads them from a directory of the
 * machine at its start; the jail mounts one of this Chromium's own there, so that no other one has
 * them.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { UnsupportedSessionError } from '../common/unsupported-session.ts';
import type { Jail, Mount } from '../jail/jail.ts';

/** By the names that Chromium has for them. */
export type Policies = {
  AlwaysOpenPdfExternally?: true;
};

/** Of Chromium, and of Google Chrome. */
const PLACES = ['/etc/chromium/policies/managed', '/etc/opt/chrome/policies/managed'];

/** Throws UnsupportedSessionError where a jail cannot mount. */
export function checkPolicies(policies: Policies | undefined, { level }: Jail): void {
  if (policies === undefined || level === 'bwrap') return;
  const message = `a setting of the session needs the sandbox bwrap, and its runner has ${level}`;
  throw new UnsupportedSessionError(message);
}

/** Writes them into the directory of the Chromium. */
export async function writePolicies(
  policies: Policies | undefined,
  chromeDir: string,
): Promise<void> {
  if (policies === undefined) return;
  const dir = directoryIn(chromeDir);
  await mkdir(dir, { mode: 0o755 });
  await writeFile(join(dir, 'session.json'), JSON.stringify(policies), { mode: 0o644 });
}

export function policyMounts(policies: Policies | undefined, chromeDir: string): Mount[] {
  if (policies === undefined) return [];
  return PLACES.map((to) => ({ from: directoryIn(chromeDir), to }));
}

function directoryIn(chromeDir: string): string {
  return join(chromeDir, 'policies');
}
