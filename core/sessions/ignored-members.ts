/** Unknown members of a request, for the session's log. Pure. */
import { ignoredIn } from '../../proto/json/ignored-members.ts';
import type { SessionParams } from '../validation/session-params.ts';

/** Adds the names that the gateway dropped, which the runner reports in the session's log. */
export function withIgnored(
  params: SessionParams,
  { metadata }: { metadata: Readonly<Record<string, string>> },
): SessionParams {
  const ignoredMembers = ignoredIn(metadata);
  return ignoredMembers.length === 0 ? params : { ...params, ignoredMembers };
}
