/** Named points at which a fault test ends the process. Every engine has the same. */

/**
 * `name:n` ends the process with SIGKILL at the n-th pass of that point, as a power loss would.
 * Undefined: never.
 */
export function crashPoints(crashAt: string | undefined): (name: string) => void {
  if (crashAt === undefined) return () => {};
  const colon = crashAt.lastIndexOf(':');
  const wanted = crashAt.slice(0, colon);
  let left = Number(crashAt.slice(colon + 1));
  return (name) => {
    if (name !== wanted) return;
    left -= 1;
    if (left === 0) process.kill(process.pid, 'SIGKILL');
  };
}
