/** The flags of a Chrome without the service: those of a session, but for its pipe and proxy. */
import { chromeFlags } from '../../../runner/browser/flags.ts';

/** Chrome's sandbox refuses root, so root starts Chrome as nobody. */
export const NOBODY = 65_534;

export function flagsOf(profile: string): string[] {
  const flags = chromeFlags({
    engine: { kind: 'headless-shell' },
    profile,
    cache: profile,
    proxyPort: 0,
    hasSandbox: true,
    hasSmallShm: false,
    ignoreCertificateErrors: true,
    extensions: [],
  });
  return flags.filter((flag) => !/^--(proxy-|remote-debugging-)/.test(flag));
}
