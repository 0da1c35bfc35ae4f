/** Reference-counted pause of a stream: it is read while nothing pauses it. Pure. */

export type Pauses = {
  pause(who: object): void;
  resume(who: object): void;
  readonly isPaused: boolean;
};

export function openPauses(stream: { pause(): unknown; resume(): unknown }): Pauses {
  const pausers = new Set<object>();
  return {
    get isPaused() {
      return pausers.size > 0;
    },
    pause(who) {
      pausers.add(who);
      stream.pause();
    },
    resume(who) {
      if (pausers.delete(who) && pausers.size === 0) stream.resume();
    },
  };
}
