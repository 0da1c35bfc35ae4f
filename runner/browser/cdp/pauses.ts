/** Reference-counted pause of a stream: it is read while nothing pauses it. Pure. */

export type Pauses = {
  /** Several owners may pause at once; each resumes for itself. */
  pause(owner: object): void;
  resume(owner: object): void;
  readonly isPaused: boolean;
};

export function openPauses(stream: { pause(): unknown; resume(): unknown }): Pauses {
  const pausers = new Set<object>();
  return {
    get isPaused() {
      return pausers.size > 0;
    },
    pause(owner) {
      pausers.add(owner);
      stream.pause();
    },
    resume(owner) {
      if (pausers.delete(owner) && pausers.size === 0) stream.resume();
    },
  };
}
