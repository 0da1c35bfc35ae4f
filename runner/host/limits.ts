/** Limits of a run's log, which the thread keeps and the supervisor keeps again. */

/** In bytes, lines' own cost included. Ours. */
export const RUN_MAX_BYTES = 1024 * 1024;
/** In bytes: what an empty line counts. Ours: else a million of them would pass. */
export const LINE_COST_BYTES = 16;
export const MARKER = '[log cut: more than 1 MiB]';
