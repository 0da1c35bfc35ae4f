/** Limits of a run's log, enforced by the thread and again by the supervisor. */

/** In bytes, including the cost of each line. Ours. */
export const RUN_MAX_BYTES = 1024 * 1024;
/** In bytes, for each line. Ours: otherwise a million empty lines would be free. */
export const LINE_COST_BYTES = 16;
export const MARKER = '[log cut: more than 1 MiB]';
