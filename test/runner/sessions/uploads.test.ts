/** Uploads and the end of their session. */
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import type { Chrome } from '../../../runner/browser/launch.ts';
import { uploads } from '../../../runner/sessions/uploads.ts';
import { faultOf } from '../../support/fault.ts';
import { tempDirectory } from '../../support/temp.ts';

const test = suite('runner/sessions/uploads');

test('an upload after the end of its session gets SESSION_ENDED', async () => {
  await using dir = tempDirectory();
  await mkdir(join(dir.path, 'uploads'));
  const part = await uploads()({ dir: dir.path } as Chrome);
  const put = must(part.putUpload, 'putUpload');
  const { promise: hasEnded, resolve: end } = Promise.withResolvers<void>();
  async function* bytes() {
    yield Buffer.from('a');
    await hasEnded;
    yield Buffer.from('b');
  }
  const late = faultOf(put('x', Readable.from(bytes())));
  await part.close?.();
  await rm(join(dir.path, 'uploads'), { recursive: true });
  end();
  assert.is((await late).reason, 'SESSION_ENDED');
});

test.run();
