/**
 * Closes descriptors that the runner inherited at its start. Spawned programs inherit them, so a
 * tenant's process would hold a pipe, a file or a socket of whatever started the service (seen: a
 * pipe of a supervising shell, at 251). Node closes none above a gap in the numbers, and opens its
 * own close-on-exec: a descriptor without that flag is not ours.
 */
import { closeSync, readdirSync, readFileSync } from 'node:fs';

const FDS = '/proc/self/fdinfo';
/** In octal, as fdinfo prints flags. */
const CLOSE_ON_EXEC = 0o2000000;

/** Returns the numbers of those closed, and of those left: Deno closes only what it has opened. */
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
    return false; // the caller reports these
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
