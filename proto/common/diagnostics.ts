/** Findings of `tabern doctor`, one line each: every role checks its own part. */

export type Finding = {
  /** A word, such as `chrome`. */
  check: string;
  /** `warn`: the service works, but needs attention; `fail`: it does not work, or will fail. */
  level: 'ok' | 'warn' | 'fail';
  /** The finding in one line. */
  says: string;
  /** The fix. */
  fix?: string;
};

export function ok(check: string, says: string): Finding {
  return { check, level: 'ok', says };
}

export function warn(check: string, says: string, fix: string): Finding {
  return { check, level: 'warn', says, fix };
}

export function fail(check: string, says: string, fix: string): Finding {
  return { check, level: 'fail', says, fix };
}
