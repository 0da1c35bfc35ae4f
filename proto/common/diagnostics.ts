/**
 * The form of a finding of `tabern doctor`, and its line of text. Each role makes the findings of
 * its own part.
 */

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
