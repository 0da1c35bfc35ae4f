/** The checksum of the rows of a table that is moved to another engine. */
import { createHash } from 'node:crypto';

/** The number of rows, and the sum of their hashes: the same in any order. */
export class Checksum {
  #rows = 0;
  #sum = 0n;

  add(row: readonly unknown[]): void {
    const text = JSON.stringify(row.map(plain));
    const hash = createHash('sha256').update(text).digest('hex').slice(0, 32);
    this.#sum = BigInt.asUintN(128, this.#sum + BigInt(`0x${hash}`));
    this.#rows += 1;
  }

  get rows(): number {
    return this.#rows;
  }

  toString(): string {
    return `${this.#rows} rows, ${this.#sum.toString(16)}`;
  }
}

function plain(value: unknown): unknown {
  return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value;
}
