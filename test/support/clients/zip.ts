/** Writes a zip file, as a person's system does, and as nobody's should. */
import { crc32, deflateRawSync } from 'node:zlib';

export type Zipped = {
  name: string;
  text?: string;
  /** Of a Unix file; 0o120777 is a link. */
  mode?: number;
  /** Replaces what the directory says of it. */
  crc?: number;
  size?: number;
  flags?: number;
  isStored?: true;
};

const VERSION = 20;
const MADE_BY_UNIX = 3 << 8;

/** The bytes of a zip file with these files. */
export function zipOf(files: readonly Zipped[]): Buffer<ArrayBuffer> {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const file of files) {
    const { local, central } = partsOf(file, offset);
    parts.push(local);
    directory.push(central);
    offset += local.length;
  }
  const size = directory.reduce((sum, { length }) => sum + length, 0);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(files.length, 8);
  end.writeUInt16LE(files.length, 10);
  end.writeUInt32LE(size, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...parts, ...directory, end]);
}

function partsOf(file: Zipped, offset: number): { local: Buffer; central: Buffer } {
  const plain = Buffer.from(file.text ?? '');
  const packed = file.isStored ? plain : deflateRawSync(plain);
  const name = Buffer.from(file.name);
  const common = Buffer.alloc(26); // from "version needed" to the lengths
  common.writeUInt16LE(VERSION, 0);
  common.writeUInt16LE(file.flags ?? 0, 2);
  common.writeUInt16LE(file.isStored ? 0 : 8, 4);
  common.writeUInt32LE(file.crc ?? crc32(plain), 10);
  common.writeUInt32LE(packed.length, 14);
  common.writeUInt32LE(file.size ?? plain.length, 18);
  common.writeUInt16LE(name.length, 22);
  const local = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), common, name, packed]);
  const rest = Buffer.alloc(14); // from "comment length" to the offset
  rest.writeUInt32LE((((file.mode ?? 0o100644) & 0xffff) << 16) >>> 0, 6);
  rest.writeUInt32LE(offset, 10);
  const made = Buffer.alloc(2);
  made.writeUInt16LE(MADE_BY_UNIX | VERSION);
  const mark = Buffer.from('PK\x01\x02', 'latin1');
  return { local, central: Buffer.concat([mark, made, common, rest, name]) };
}
