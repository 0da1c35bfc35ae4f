/** A session that this runner cannot give as it was asked for. Its message is for its user. */
export class UnsupportedSessionError extends Error {
  override readonly name = 'UnsupportedSessionError';
}
