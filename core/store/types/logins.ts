/** Logins of the console, as stored. */

export type NewConsoleLogin = {
  /** SHA-256 of its text. */
  hash: Uint8Array;
  /** Null for an operator login. */
  projectId: string | null;
  /** Of the operator token that made the login; null for the login of a project. */
  operatorHash: Uint8Array | null;
  /** Public part of the API key; null for a login by a one-time code. */
  keyId: string | null;
  at: number;
  expiresAt: number;
};

export type ConsoleLoginRow = {
  /** Both null for an operator login. */
  projectId: string | null;
  projectName: string | null;
  keyId: string | null;
  expiresAt: number;
};

export type LoginOps = {
  /**
   * Removes expired logins, and the oldest ones of the project, or of the operator, beyond `max`,
   * this one included.
   */
  addConsoleLogin(wanted: NewConsoleLogin & { max: number }): void;
  /**
   * Undefined when it has expired, its API key is revoked, or it is of another operator token than
   * that of `operatorHash`.
   */
  findConsoleLogin(wanted: {
    hash: Uint8Array;
    operatorHash: Uint8Array;
    at: number;
  }): ConsoleLoginRow | undefined;
  /** A login that was removed is not restored. */
  extendConsoleLogin(wanted: { hash: Uint8Array; expiresAt: number }): void;
  removeConsoleLogin(hash: Uint8Array): void;
};
