/** The mounts that a program needs to start in a jail: itself and its shared libraries. */
import { execFile } from 'node:child_process';
import { realpath } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { Mount } from './jail.ts';
import { findProgram } from './prlimit.ts';

/** Ours: ldd answers in about 5 ms. */
const LDD_TIMEOUT_MS = 10_000;
const run = promisify(execFile);

/** Read-only mounts with which `program` (a path) starts at `inside`. */
export async function programMounts(program: string, inside: string): Promise<Mount[]> {
  const from = await realpath(program);
  const libs = parseLdd(await ldd(from));
  const mounts = libs.map(async (to) => ({ from: await realpath(to), to }));
  return [{ from, to: inside }, ...(await Promise.all(mounts))];
}

async function ldd(path: string): Promise<string> {
  const program = findProgram('ldd');
  if (program === undefined) throw new Error('no ldd: install libc-bin, a jail needs it');
  try {
    return (await run(program, [path], { timeout: LDD_TIMEOUT_MS, env: {} })).stdout;
  } catch (error) {
    // ldd fails on a static program, which needs no libraries
    if (String((error as { stderr?: unknown }).stderr).includes('not a dynamic')) return '';
    throw error;
  }
}

/** Lines `libc.so.6 => /lib/…/libc.so.6 (0x…)` and `/lib64/ld-linux-x86-64.so.2 (0x…)`. */
function parseLdd(output: string): string[] {
  const paths = output.split('\n').map((line) => /(?:=> |^\s+)(\/\S+) \(0x/.exec(line)?.[1]);
  return [...new Set(paths.filter((path) => path !== undefined))];
}
