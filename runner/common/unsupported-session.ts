/** The runner cannot provide the requested session. The message is for the session's user. */
export class UnsupportedSessionError extends Error {
  override readonly name = 'UnsupportedSessionError';
}
