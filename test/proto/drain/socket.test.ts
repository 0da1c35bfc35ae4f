/** The socket by which a process is asked to drain, at the end of that process. */
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { drainSocketOf, openDrainSocket } from '../../../proto/drain/socket.ts';
import { tempDirectory } from '../../support/temp.ts';

const test = suite('proto/drain/socket');
const end = { drainS: 600, draining: new AbortController().signal, drain: () => undefined };

test('a client that waits is answered at the end, and a silent one delays no end', async () => {
  await using dir = tempDirectory();
  const path = drainSocketOf(dir.path);
  const opened = await openDrainSocket(dir.path, { end });
  const silent = connect(path);
  await once(silent, 'connect');
  const waiting = connect(path);
  const answered: Buffer[] = [];
  waiting.on('data', (bytes) => answered.push(bytes));
  waiting.write('POST /drain?wait=true HTTP/1.1\r\nhost: localhost\r\n\r\n');
  await once(waiting, 'data');
  await Promise.all([
    opened[Symbol.asyncDispose](),
    once(silent.resume(), 'close'),
    once(waiting, 'close'),
  ]);
  assert.match(Buffer.concat(answered).toString(), /draining for 600 s[\s\S]*ended/);
  assert.not.ok(existsSync(path));
});

test.run();
