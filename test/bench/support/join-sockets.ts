import type { Socket } from 'node:net';

/** Copies bytes in both directions; when one ends, so does the other. */
export function joinSockets(one: Socket, other: Socket): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.pipe(to);
    from.on('error', () => to.destroy()).on('close', () => to.destroy());
  }
}
