/**
 * Writes the index of a recording's fragmented MP4 (ISO/IEC 14496-12, 8.16.3: sidx), between the
 * init segment and the media segments. Players read the duration and the seek positions from it.
 * Pure.
 */

const HEAD_BYTES = 32;
const ENTRY_BYTES = 12;
/** Units in a second. */
const TIMESCALE = 1_000;
/** Each segment begins with a key frame. */
const STARTS_WITH_SAP_1 = 0x90000000;
/** mediabunny numbers the track 1. */
const TRACK = 1;

export function mp4Index(segments: readonly { size: number; durationMs: number }[]): Buffer {
  const box = Buffer.alloc(HEAD_BYTES + segments.length * ENTRY_BYTES);
  box.writeUInt32BE(box.length, 0);
  box.write('sidx', 4, 'latin1');
  box.writeUInt32BE(TRACK, 12);
  box.writeUInt32BE(TIMESCALE, 16);
  // version, flags, earliest time and first offset are 0: segments follow directly
  box.writeUInt16BE(segments.length, 30);
  for (const [index, { size, durationMs }] of segments.entries()) {
    const at = HEAD_BYTES + index * ENTRY_BYTES;
    box.writeUInt32BE(size, at);
    box.writeUInt32BE(durationMs, at + 4);
    box.writeUInt32BE(STARTS_WITH_SAP_1, at + 8);
  }
  return box;
}
