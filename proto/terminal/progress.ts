/**
 * Progress of long operations: a bar for bytes whose number is known, a spinner for other waits.
 * Both are on stderr, and only on a terminal; otherwise there are plain lines.
 */
import { sizeText } from './size.ts';

/** Without a terminal, one line of progress for this share of the work. */
const SHARE = 0.1;
const BAR_COLUMNS = 30;
/** In milliseconds, between two pictures. */
const FRAME_MS = 100;
/** In milliseconds: shorter waits need no spinner. */
const SPIN_AFTER_MS = 1_000;
const FRAMES = ['|', '/', '-', '\\'];

export type Screen = { isTTY?: boolean; write(text: string): unknown };
export type Progress = { add(bytes: number): void; end(): void };

export function openProgress(
  verb: string,
  totalBytes: number,
  stream: Screen = process.stderr,
): Progress {
  let done = 0;
  let next = SHARE;
  let drawnAt = 0;
  let width = 0;
  const share = () => (totalBytes === 0 ? 1 : Math.min(1, done / totalBytes));
  const amount = () => `${sizeText(done)} of ${sizeText(totalBytes)}`;
  const draw = () => {
    const full = Math.round(share() * BAR_COLUMNS);
    const bar = '='.repeat(full).padEnd(BAR_COLUMNS);
    const text = `${verb} [${bar}] ${Math.floor(share() * 100)} % ${amount()}`;
    stream.write(`\r${text.padEnd(width)}`); // covers a longer one
    width = text.length;
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

export type Spinner = Disposable & {
  /** Erases it, for a line; the next picture follows the line. */
  pause(): void;
};

/** Shows the text after a second, until it is disposed. */
export function openSpinner(text: string, stream: Screen = process.stderr): Spinner {
  let frame = 0;
  let width = 0;
  const erase = () => {
    if (width > 0) stream.write(`\r${' '.repeat(width)}\r`);
    width = 0;
  };
  const draw = () => {
    const shown = `${FRAMES[frame % FRAMES.length]} ${text}`;
    frame += 1;
    stream.write(`\r${shown}`);
    width = shown.length;
  };
  let timer: NodeJS.Timeout | undefined;
  if (stream.isTTY) {
    timer = setTimeout(() => {
      draw();
      timer = setInterval(draw, FRAME_MS).unref();
    }, SPIN_AFTER_MS).unref();
  }
  return {
    pause: erase,
    [Symbol.dispose]() {
      clearTimeout(timer);
      erase();
    },
  };
}
