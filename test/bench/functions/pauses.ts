/** Of the trivial function and of its floor: the same for both. */

/** Until the code is compiled: the first runs of a service take 1.5 times as long. */
export const WARM_UP_RUNS = 200;
/** In milliseconds: as a rule the next Chrome starts meanwhile, and the one before it ends. */
export const PAUSE_MS = 700;
