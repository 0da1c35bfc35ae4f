/**
 * The tests that mean nothing with the roles apart (TABERN_TEST_TOPOLOGY=split), by suite and name,
 * `*` for all of a suite, each with the reason. A run prints them as skipped; every other test of a
 * journey runs.
 */
const LOOKS = 'its service begins with a stored data directory, of SQLite';
const RUNNER = 'it adds a runner of its own to a service that has one, by the socket of core';
const UPGRADE = '`tabern upgrade` replaces the program of `tabern serve`';
const DRAIN = 'one signal drains the roles of `tabern serve`; apart, each is drained by itself';
const METRICS = '`tabern serve` has the figures of all roles once; apart, each has its own';

type Reasons = Readonly<Record<string, Readonly<Record<string, string>>>>;

export const ALL = '*';

export const ONE_PROCESS: Reasons = {
  'journey/console/looks': { [ALL]: LOOKS },
  'journey/operations/drain': {
    'a drained runner with five live sessions loses none, and new ones start elsewhere': RUNNER,
    'POST /drain has a time of its own; when it is over, sessions end': RUNNER,
    'a draining service starts nothing, and ends with its last session': DRAIN,
    'a second signal ends the sessions of a draining service': DRAIN,
  },
  'journey/operations/metrics': {
    'one response has the metrics of all roles, without ids, keys or addresses': METRICS,
  },
  'journey/operations/upgrade/ends': { [ALL]: UPGRADE },
  'journey/operations/upgrade/load': { [ALL]: UPGRADE },
  'journey/operations/upgrade/postgres-tls': { [ALL]: UPGRADE },
};

/** Why the test is skipped; undefined for one that runs. */
export function skipOf(suite: string, test: string): string | undefined {
  if (process.env['TABERN_TEST_TOPOLOGY'] !== 'split') return undefined;
  const reasons = ONE_PROCESS[suite] ?? {};
  return reasons[test] ?? reasons[ALL];
}
