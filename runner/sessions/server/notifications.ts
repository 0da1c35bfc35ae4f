/** What a runner hears of core while it works: releases, and API keys that were revoked. */
import { followReleases } from './releases.ts';
import { followRevocations } from './revocations.ts';

type Options = Parameters<typeof followReleases>[0] & Parameters<typeof followRevocations>[0];

/** Settles when the signal aborts, or when this instance is superseded. */
export async function followNews(options: Options): Promise<void> {
  await Promise.all([followReleases(options), followRevocations(options)]);
}
