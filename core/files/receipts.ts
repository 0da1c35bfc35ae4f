/**
 * Receipts of stored bytes that have no row yet: the runner that stored them reports the row with
 * others (core/runners/reports.ts). A receipt has all that the row needs, and an HMAC-SHA-256, so
 * that any core can write the row, and no other bytes can be named. Pure.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Sealer } from '../common/sealer.ts';
import type { BlobRow } from '../store/types/files.ts';

/**
 * Ours: a runner tries to report for nine minutes. With the half hour of an upload, less than the
 * hour after which bytes without a row are swept.
 */
const LIFE_MS = 900_000;

/** `leaseId`: of the work that stored it. */
export type Receipted = Omit<BlobRow, 'createdAt'> & { leaseId: string };

/** The content of a receipt. `place`: where the bytes are; elsewhere the row would have none. */
type Content = Receipted & { place: string; until: number };

export type Receipts = {
  make(blob: Receipted): string;
  /** Undefined for an expired receipt, one of another place, and any other text. */
  read(receipt: string): Receipted | undefined;
};

export function openReceipts(options: {
  sealer: Pick<Sealer, 'derive'>;
  /** Name of the bucket, or path of the files. */
  place: string;
  now: () => number;
}): Receipts {
  const { place, now } = options;
  const key = options.sealer.derive('receipts of stored bytes');
  const macOf = (text: string) => createHmac('sha256', key).update(text).digest('base64url');

  return {
    make(blob) {
      const content: Content = { ...blob, place, until: now() + LIFE_MS };
      const text = Buffer.from(JSON.stringify(content)).toString('base64url');
      return `${text}.${macOf(text)}`;
    },
    read(receipt) {
      const [text = '', mac = ''] = receipt.split('.', 2);
      const [own, given] = [Buffer.from(macOf(text)), Buffer.from(mac)];
      if (own.length !== given.length || !timingSafeEqual(own, given)) return undefined;
      const {
        place: found,
        until,
        ...blob
      } = JSON.parse(Buffer.from(text, 'base64url').toString()) as Content;
      return found === place && now() < until ? blob : undefined;
    },
  };
}
