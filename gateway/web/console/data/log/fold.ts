/**
 * The time of a session as a place on its timeline, from 0 to 1, and back. Idle stretches have the
 * width of a notch each; all other time is drawn to scale. Pure.
 */

/** Unix milliseconds. */
export type Range = { from: number; to: number };
/** A part of the time and its place; both grow. An idle one is a notch. */
export type Piece = { from: number; to: number; left: number; right: number; isIdle: boolean };
/** Of a whole range, in order and without a hole; at least one. */
export type Fold = readonly Piece[];

/** Ours: a shorter pause is part of the work. */
const IDLE_MS = 5_000;
/** Ours: what happened stays visible, and a player that skips stops before the next event. */
const MARGIN_MS = 500;
/** Ours: a notch has room for its time, and all of them leave half of the width. */
const NOTCH = 0.07;
const NOTCHES = 0.5;

/** The stretches in which nothing began or ended. `times` may be in any order. */
export function idleOf(times: readonly number[], { from, to }: Range): Range[] {
  const inside = times.filter((at) => at > from && at < to).sort((a, b) => a - b);
  const idle: Range[] = [];
  let before = from;
  for (const at of [...inside, to]) {
    if (at - before > IDLE_MS) idle.push({ from: before + MARGIN_MS, to: at - MARGIN_MS });
    before = at;
  }
  return idle;
}

/** The range with these stretches folded; with none of them, all of it is to scale. */
export function foldOf({ from, to }: Range, idle: readonly Range[]): Fold {
  const end = Math.max(to, from + 1);
  const notch = Math.min(NOTCH, NOTCHES / Math.max(1, idle.length));
  const idleMs = idle.reduce((sum, one) => sum + one.to - one.from, 0);
  const scale = (1 - notch * idle.length) / Math.max(1, end - from - idleMs);
  const pieces: Piece[] = [];
  const add = (until: number, width: number, isIdle: boolean): void => {
    const { to: at = from, right: left = 0 } = pieces.at(-1) ?? {};
    pieces.push({ from: at, to: until, left, right: left + width, isIdle });
  };
  let at = from;
  for (const one of idle) {
    add(one.from, (one.from - at) * scale, false);
    add(one.to, notch, true);
    at = one.to;
  }
  add(end, (end - at) * scale, false);
  return pieces;
}

/** The place of a time; times outside of the range are at its ends. */
export function placeOf(fold: Fold, at: number): number {
  const piece = pieceOf(fold, (one) => at < one.to);
  return scaled(at, [piece.from, piece.to], [piece.left, piece.right]);
}

/** The time at a place. */
export function timeAt(fold: Fold, place: number): number {
  const piece = pieceOf(fold, (one) => place < one.right);
  return scaled(place, [piece.left, piece.right], [piece.from, piece.to]);
}

/** The first piece that matches, by halves; the last one when none does. */
function pieceOf(fold: Fold, matches: (piece: Piece) => boolean): Piece {
  let low = 0;
  let high = fold.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    const piece = fold[middle];
    if (piece !== undefined && matches(piece)) high = middle;
    else low = middle + 1;
  }
  const found = fold[low];
  if (found === undefined) throw new Error('a fold has no piece');
  return found;
}

type Span = readonly [from: number, to: number];

function scaled(value: number, [from, to]: Span, [left, right]: Span): number {
  const share = to > from ? (value - from) / (to - from) : 0;
  return left + Math.min(1, Math.max(0, share)) * (right - left);
}
