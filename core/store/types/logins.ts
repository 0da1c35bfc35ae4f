/** Logins of the console, as stored. */

export type NewConsoleLogin = {
  /** SHA-256 of its text. */
  hash: Uint8Array;
  projectId: string;
  /** Public part of the API key; null for a login by a one-time code. */
  keyId: string | null;
  at: number;
  expiresAt: number;
};

export type ConsoleLoginRow = {
  projectId: string;
  projectName: string;
  keyId: string | null;
  expiresAt: number;
};

export type LoginOps = {
  /** Removes expired logins, and the project's oldest ones beyond `max`, this one included. */
  addConsoleLogin(wanted: NewConsoleLogin & { max: number }): void;
  /** Undefined when it has expired, or its API key is revoked. */
  findConsoleLogin(wanted: { hash: Uint8Array; at: number }): ConsoleLoginRow | undefined;
  /** A login that was removed is not restored. */
  extendConsoleLogin(wanted: { hash: Uint8Array; expiresAt: number }): void;
  removeConsoleLogin(hash: Uint8Array): void;
};
