/**
 * The files that may read the wall clock, with a reason each. Anybody may set that clock, so no
 * duration is computed from it: performance.now() passes while the process runs, and
 * proto/common/steady-clock.ts gives times that can be subtracted.
 */
import { codeOf } from './source.ts';

export const MAY_READ_WALL_CLOCK: Readonly<Record<string, string>> = {
  'core/maintenance/backup/offline.ts': 'stored time: when a backup was taken',
  'core/maintenance/clock.ts': 'the start of the clock that core schedules by',
  'core/maintenance/doctor.ts': 'reports what the wall clock says',
  'core/common/ids.ts': 'ids',
  'core/files/s3/bucket.ts': 'signatures',
  'core/files/orphan-sweep.ts': 'compared with times of files',
  'core/common/secret-files.ts': 'compared with times of files',
  'core/maintenance/database-clock.ts': 'compared with the clock of the database',
  'core/main.ts': 'signatures; reports a clock that is behind what was written',
  'gateway/packaging/cache.ts': 'compared with times of files',
  'gateway/cli/operator/doctor.ts': 'compared with the dates of a certificate',
  'gateway/cli/operator/certs.ts': 'dates of certificates',
  'gateway/webhooks/core-bridge.ts': 'ids',
  'gateway/webhooks/attempt.ts': 'compared with the date in a Retry-After header',
  'proto/rpc/core-problem.ts': 'compared with the dates of a certificate',
  'proto/rpc/remote.ts': 'grpc-js takes and gives deadlines as dates',
  'proto/common/steady-clock.ts': 'the start of a clock',
  'runner/common/blob-cache.ts': 'compared with times of files',
  'runner/sessions/relay/client.ts': 'stored time: entries of a protocol log',
  'runner/sessions/recording/encoder-page.js': "replaces a library's clock by a constant",
  'runner/cli/listen.ts': 'times that a person reads',
  'runner/host/console.ts': 'stored time: lines of a log',
  'runner/builds/install/cache.ts': 'compared with times of files',
};

const WALL_CLOCK = /\bDate\s*\.\s*now\b|\bnew\s+Date\s*\(\s*\)|(?<![\w.])Date\(\s*\)/;

/** The first read of the wall clock in the code; undefined without one. */
export function wallClockIn(text: string): string | undefined {
  return WALL_CLOCK.exec(codeOf(text))?.[0];
}
