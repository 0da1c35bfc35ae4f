/** Members of a request that nobody knows, on their way to the session's log. Pure. */
import { ignoredIn } from '../../proto/json/ignored-members.ts';
import type { SessionParams } from '../validation/session-params.ts';

/** With the names of what the gateway dropped, which the runner reports in the session's log. */
export function withIgnored(
  params: SessionParams,
  { metadata }: { metadata: Readonly<Record<string, string>> },
): SessionParams {
  const ignoredMembers = ignoredIn(metadata);
  return ignoredMembers.length === 0 ? params : { ...params, ignoredMembers };
}
