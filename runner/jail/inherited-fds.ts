/**
 * Descriptors that the runner was started with and knows nothing of. A program that is spawned
 * inherits them, so a tenant's process would hold a pipe, a file or a socket of whoever started the
 * service (seen: a pipe of a supervising shell, at 251). Node itself closes none that lies above a
 * gap, and opens its own close-on-exec: what is not, is not ours.
 */
import { closeSync, readdirSync, readFileSync } from 'node:fs';

const FDS = '/proc/self/fdinfo';
/** In octal, as fdinfo writes flags. */
const CLOSE_ON_EXEC = 0o2000000;

/**
 * Closes them; gives their numbers. The standard streams stay, and so does what cannot be closed:
 * Deno closes nothing that it did not open itself.
 */
export function closeInherited(): { closed: number[]; left: number[] } {
  const fds = readdirSync(FDS).map(Number);
  const inherited = fds.filter((fd) => fd > 2 && isInheritable(fd));
  const left = inherited.filter((fd) => !isClosed(fd));
  return { closed: inherited.filter((fd) => !left.includes(fd)), left };
}

function isClosed(fd: number): boolean {
  try {
    closeSync(fd);
    return true;
  } catch {
    return false; // the caller tells which ones stay
  }
}

function isInheritable(fd: number): boolean {
  try {
    const flags = /^flags:\s*(\d+)$/m.exec(readFileSync(`${FDS}/${fd}`, 'utf8'))?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0;
  } catch {
    return false; // the descriptor of the listing itself, closed by now
  }
}
