/**
 * The part of core's doctor that checks the files in keys/: length, format and permissions.
 * doctor.ts checks whether the master key opens the database.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type Finding, fail, ok, warn } from '../../proto/common/diagnostics.ts';
import { readToken } from '../../proto/common/durable.ts';
import { ageOf } from '../common/secret-files.ts';

const TOKENS = ['runner.token', 'gateway.token', 'operator.token'];
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\n?$/;
const CHECK = 'keys';
const OTHERS = 0o077;

/** The most severe problem, as one finding. */
export function checkKeys(dataDir: string): Finding {
  const folder = join(dataDir, 'keys');
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return fail(CHECK, `${folder} cannot be read (${code})`, 'run this as the service’s user');
  }
  const found = names.flatMap((name) => wrongIn(join(folder, name), name));
  const all = [...found, ...(openToOthers(folder) ?? [])];
  return all.find(({ level }) => level === 'fail') ?? all[0] ?? ok(CHECK, `${names.length} files`);
}

function wrongIn(path: string, name: string): Finding[] {
  try {
    return contentOf(path, name) ?? openToOthers(path) ?? [];
  } catch (error) {
    const { code = error } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return []; // removed since the names were read
    return [fail(CHECK, `${path} cannot be read (${code})`, 'run this as the service’s user')];
  }
}

function contentOf(path: string, name: string): Finding[] | undefined {
  if (name.endsWith('.new')) {
    const says = `${path} was left by a process that was killed`;
    return [warn(CHECK, says, `stop the service, then delete ${path}`)];
  }
  if (name === 'runner.id' && !UUID.test(readFileSync(path, 'utf8'))) {
    const says = `${path} holds no UUID: the next start of the runner replaces it`;
    return [warn(CHECK, says, 'restart the runner')];
  }
  const [, current = name, next] = /^(.*\.token)(\.next)?$/.exec(name) ?? [];
  if (TOKENS.includes(current) && !isToken(path)) {
    const says = `${path} is damaged: nothing starts that needs it`;
    const anew = next
      ? '; `tabern tokens rotate` makes another'
      : '; give other machines the new one';
    return [fail(CHECK, says, `delete ${path} and restart core${anew}`)];
  }
  return next === undefined ? undefined : [leftToken(path, current)];
}

/** Whoever has it is accepted as long as the file is there. */
function leftToken(path: string, current: string): Finding {
  const role = current.replace('.token', '');
  const says = `${path} is accepted besides ${current}, for ${ageOf(statSync(path).mtimeMs)}`;
  return warn(CHECK, says, `\`tabern tokens finish ${role}\` once each ${role} has it`);
}

function isToken(path: string): boolean {
  try {
    readToken(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== undefined) throw error;
    return false;
  }
}

function openToOthers(path: string): Finding[] | undefined {
  if ((statSync(path).mode & OTHERS) === 0) return undefined;
  if (path.endsWith('master.key')) return undefined; // checked by doctor.ts
  return [warn(CHECK, `others may read ${path}`, `chmod go= ${path}`)];
}
