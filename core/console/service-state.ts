/**
 * The state of the service that each of its projects may know: its browsers, its disk. Nothing of
 * it counts the work of a project.
 */
import type {
  ConsoleServiceState,
  ConsoleServiceState_Browser,
} from '../../proto/gen/tabern/v1/console.pb.ts';
import type { Disk } from '../files/disk-space.ts';
import type { Readiness, ReportedBrowser } from '../maintenance/readiness.ts';

/** Source: console.proto. */
const BROWSERS_MAX = 8;

export function serviceState({
  disk,
  readiness,
}: {
  disk: Pick<Disk, 'freeBytes' | 'isLow'>;
  readiness: Pick<Readiness, 'runners' | 'browsers'>;
}): ConsoleServiceState {
  const { present, able } = readiness.runners();
  const reported = readiness.browsers();
  const startedAt = Math.max(...reported.map((one) => one.startedAt));
  return {
    hasRunner: present > 0,
    browserFailing: present > 0 && able === 0,
    spares: reported.reduce((sum, { spares }) => sum + spares, 0),
    browsers: versionsOf(reported),
    browserStartedAt: reported.length > 0 ? new Date(startedAt) : undefined,
    diskFreeBytes: disk.freeBytes,
    diskLow: disk.isLow,
  };
}

/** Each version once, with the oldest of its programs. */
function versionsOf(reported: readonly ReportedBrowser[]): ConsoleServiceState_Browser[] {
  const known = new Map<string, number>();
  for (const { product, buildMs } of reported) {
    if (product === '') continue; // not read yet
    known.set(product, Math.min(known.get(product) ?? buildMs, buildMs));
  }
  return [...known]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .slice(0, BROWSERS_MAX)
    .map(([product, ms]) => ({ product, builtAt: ms === 0 ? undefined : new Date(ms) }));
}
