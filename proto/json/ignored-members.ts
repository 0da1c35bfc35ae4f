/**
 * Unknown members of a request: the gateway drops them and sends their names to core as metadata,
 * so that the session's log can report them. Pure.
 */

export const IGNORED_METADATA = 'x-tabern-ignored';
/** Ours: names for a person to read. */
const [NAMES_MAX, NAME_MAX_CHARS] = [20, 64];

export function ignoredMetadata(names: readonly string[]): Record<string, string> {
  if (names.length === 0) return {};
  const shown = names.slice(0, NAMES_MAX).map((name) => {
    return encodeURIComponent(name.slice(0, NAME_MAX_CHARS).toWellFormed());
  });
  return { [IGNORED_METADATA]: shown.join() };
}

/** The names; untrusted text when a client calls core directly. */
export function ignoredIn(metadata: Readonly<Record<string, string>>): string[] {
  const text = metadata[IGNORED_METADATA] ?? '';
  if (text === '' || !/^[\w.~!*'()%,-]{1,8192}$/.test(text)) return [];
  try {
    const names = text.split(',').slice(0, NAMES_MAX).map(decodeURIComponent);
    return names.map((name) => name.slice(0, NAME_MAX_CHARS));
  } catch {
    return [];
  }
}
