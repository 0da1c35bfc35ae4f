/**
 * `tabern tokens`: changes a role's token without a refused call. `rotate` writes the next token
 * beside the current one, and core accepts both from its next start; `finish` makes it the current
 * one. Files of the data directory: core reads them at its start, and a restart ends no session.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createFile, noAccess, readToken, syncDirectory } from '../../../proto/common/durable.ts';
import type { Env } from '../../../proto/common/env.ts';
import { EXIT, Exit } from '../../process/exit-codes.ts';
import type { Given } from '../command.ts';
import { placeOf } from './core-client.ts';
import { answer, note, print } from './terminal.ts';

const ROLES = ['runner', 'gateway', 'operator'];

/** Never overwrites a next token, which some machines may use already. */
export async function rotateToken(role: string, given: Given, env: Env): Promise<number> {
  const { path, next } = filesOf(role, given, env);
  if (existsSync(next)) {
    throw new Exit(
      EXIT.failed,
      `${next} exists: \`tabern tokens finish ${role}\` makes it current`,
    );
  }
  inKeys(next, () => createFile(next, `${randomBytes(32).toString('base64url')}\n`));
  return answer(given, { path: next }, () => {
    print(next);
    note(`1. restart core: it accepts this token and the one in ${path}`);
    note(`2. give it to each ${role} (TABERN_${role.toUpperCase()}_TOKEN), and restart these`);
    note(`3. tabern tokens finish ${role}, and restart core: it refuses the old one`);
  });
}

export async function finishToken(role: string, given: Given, env: Env): Promise<number> {
  const { path, next } = filesOf(role, given, env);
  if (!existsSync(next)) {
    throw new Exit(EXIT.failed, `no ${next}: \`tabern tokens rotate ${role}\` makes one`);
  }
  inKeys(next, () => {
    readToken(next); // else core would refuse to start
    renameSync(next, path);
    syncDirectory(dirname(path));
  });
  return answer(given, { path }, () => {
    print(path);
    note('restart core: it refuses the old token');
  });
}

function filesOf(role: string, given: Given, env: Env): { path: string; next: string } {
  if (!ROLES.includes(role))
    throw new Exit(EXIT.config, `the role must be one of ${ROLES.join(', ')}`);
  const { dataDir } = placeOf(given, env);
  const path = join(dataDir, 'keys', `${role}.token`);
  if (existsSync(path)) return { path, next: `${path}.next` };
  const name = `TABERN_${role.toUpperCase()}_TOKEN`;
  throw new Exit(
    EXIT.failed,
    `no ${path}: set --data to core's directory; a token in ${name} is changed by ${name}_NEXT`,
  );
}

function inKeys(path: string, act: () => void): void {
  try {
    act();
  } catch (cause) {
    const denied = noAccess(cause, dirname(dirname(path)));
    if (denied === undefined) throw cause;
    throw new Exit(EXIT.config, denied, cause);
  }
}
