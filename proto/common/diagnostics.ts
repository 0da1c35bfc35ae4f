/** What `tabern doctor` finds, one line each: every role looks at its own part. */

export type Finding = {
  /** A word, such as `chrome`. */
  check: string;
  /** `warn`: the service works, and somebody should look; `fail`: it does not, or will not. */
  level: 'ok' | 'warn' | 'fail';
  /** What was found: one line. */
  says: string;
  /** What to do about it. */
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
