/** Plain requests through the egress: nobody fills it by not reading. */
import type { Writable } from 'node:stream';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { until } from '../../../support/poll.ts';
import { get, openLab } from './forward-lab.ts';

const floods = suite('runner/jail/egress/forward-floods');

/** The site's part of a test: writes these bytes `count` times, as fast as they are taken. */
function flood(to: Writable, bytes: Buffer, count: number, onWritten: () => void): void {
  const write = (left: number): void => {
    if (left === 0) return void to.end();
    onWritten();
    if (to.write(bytes)) setImmediate(write, left - 1);
    else to.once('drain', () => write(left - 1));
  };
  write(count);
}

/** How far it got when it stands still, as it does when nobody reads. */
async function stands(written: () => number): Promise<number> {
  let [before, same] = [0, 0];
  await until(() => {
    same = before > 0 && before === written() ? same + 1 : 0;
    before = written();
    return same === 10;
  });
  return before;
}

floods('who does not read is not filled', async () => {
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

floods('nor with answers that have no body, of which a site may say any number', async () => {
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

floods('who asks and asks and reads no answer is not heard for ever', async () => {
  await using lab = await openLab((_, to) => void to.end(Buffer.alloc(16 << 10)));
  const client = await lab.client();
  client.socket.pause();
  client.socket.write(get(`${lab.site}/`).repeat(8_000));
  assert.ok((await stands(() => lab.asked.length)) < 6_000, String(lab.asked.length));
});

floods.run();
