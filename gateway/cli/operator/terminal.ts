/** Output of commands: tables for people, JSON for programs, progress of long operations. */

/** Without a terminal, one line of progress for this share of the work. */
const SHARE = 0.1;
const BAR_COLUMNS = 30;
/** In milliseconds, between two updates of a progress bar. */
const FRAME_MS = 100;
const MIB = 1 << 20;

/** Prints one result on stdout. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Prints a message on stderr. */
export function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

export type Progress = { add(bytes: number): void; end(): void };

/** A progress bar on a terminal, plain lines otherwise; both on stderr. */
export function openProgress(
  verb: string,
  totalBytes: number,
  stream: Pick<NodeJS.WriteStream, 'write'> & { isTTY?: boolean } = process.stderr,
): Progress {
  let done = 0;
  let next = SHARE;
  let drawnAt = 0;
  const share = () => (totalBytes === 0 ? 1 : Math.min(1, done / totalBytes));
  const amount = () => `${mib(done)} of ${mib(totalBytes)} MiB`;
  const draw = () => {
    const full = Math.round(share() * BAR_COLUMNS);
    const bar = '='.repeat(full).padEnd(BAR_COLUMNS);
    stream.write(`\r${verb} [${bar}] ${Math.floor(share() * 100)} % ${amount()}`);
  };
  return {
    add(bytes) {
      done += bytes;
      if (stream.isTTY) {
        const now = performance.now();
        if (now - drawnAt < FRAME_MS) return;
        drawnAt = now;
        draw();
      } else if (share() >= next) {
        stream.write(`${verb} ${amount()}\n`);
        while (next <= share()) next += SHARE;
      }
    },
    end() {
      if (!stream.isTTY) return;
      draw();
      stream.write('\n');
    },
  };
}

function mib(bytes: number): string {
  return (bytes / MIB).toFixed(1);
}
