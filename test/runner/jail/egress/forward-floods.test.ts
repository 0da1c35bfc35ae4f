/** Plain requests through the egress: a peer that does not read fills no buffer. */
import type { Writable } from 'node:stream';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { until } from '../../../support/poll.ts';
import { get, openLab } from './forward-lab.ts';

const floods = suite('runner/jail/egress/forward-floods');

/** The site: writes these bytes `count` times, as fast as they are read. */
function flood(to: Writable, bytes: Buffer, count: number, onWritten: () => void): void {
  const write = (left: number): void => {
    if (left === 0) return void to.end();
    onWritten();
    if (to.write(bytes)) setImmediate(write, left - 1);
    else to.once('drain', () => write(left - 1));
  };
  write(count);
}

/** The count at which it stops, as it must when the other side does not read. */
async function stands(written: () => number): Promise<number> {
  let [before, same] = [0, 0];
  await until(() => {
    same = before > 0 && before === written() ? same + 1 : 0;
    before = written();
    return same === 10;
  });
  return before;
}

floods('responses stop while the client does not read', async () => {
  let written = 0;
  await using lab = await openLab((_, to) => {
    flood(to, Buffer.alloc(1 << 20), 256, () => {
      written += 1;
    });
  });
  const client = await lab.client();
  client.socket.pause();
  client.socket.write(get(`${lab.site}/`));
  // long before all of it is written
  assert.ok((await stands(() => written)) < 200, String(written));
});

floods('informational responses stop too while the client does not read', async () => {
  const hint = `HTTP/1.1 103 Early Hints\r\nLink: ${'a'.repeat(100_000)}\r\n\r\n`;
  const hints = Buffer.from(hint.repeat(10));
  let written = 0;
  await using lab = await openLab((from) => {
    flood(from.socket, hints, 256, () => {
      written += 1;
    });
  });
  const client = await lab.client();
  client.socket.pause();
  client.socket.write(get(`${lab.site}/`));
  assert.ok((await stands(() => written)) < 200, String(written));
});

floods('requests stop while the client reads no response', async () => {
  await using lab = await openLab((_, to) => void to.end(Buffer.alloc(16 << 10)));
  const client = await lab.client();
  client.socket.pause();
  client.socket.write(get(`${lab.site}/`).repeat(8_000));
  assert.ok((await stands(() => lab.asked.length)) < 6_000, String(lab.asked.length));
});

floods.run();
