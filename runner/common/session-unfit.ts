/** A session that this runner cannot give as it was asked for. Its message is for its user. */
export class SessionUnfit extends Error {
  override readonly name = 'SessionUnfit';
}
