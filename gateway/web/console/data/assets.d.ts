/** Set by gateway/packaging/console.ts: the URLs of the threads. */
declare const LOG_THREAD: string;
declare const CHANGES_THREAD: string;
