/** URLs of threads, which a page under require-trusted-types-for must mark as its own. */

type Policy = { createScriptURL(url: string): unknown };
type Factory = {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): Policy;
};

let policy: Policy | undefined;

/** The URL of an asset of this page. Its name is set at the build and contains no other input. */
export function threadUrl(url: string): string {
  const factory = (globalThis as { trustedTypes?: Factory }).trustedTypes;
  if (factory === undefined) return url;
  policy ??= factory.createPolicy('tabern', { createScriptURL: own });
  return policy.createScriptURL(url) as string; // a TrustedScriptURL; Worker accepts it
}

function own(url: string): string {
  if (!url.startsWith('/console/assets/')) throw new Error('not an asset of the console');
  return url;
}
