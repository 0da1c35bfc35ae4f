/** One upload of a project's contexts at a time. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openUploads } from '../../../core/contexts/content.ts';
import { faultOf } from '../../support/fault.ts';

const test = suite('core/contexts/uploads');

/** Of an upload that begins and ends at once. */
async function refusal(uploads: ReturnType<typeof openUploads>, projectId: string) {
  const attempt = async () => uploads.begin(projectId)[Symbol.dispose]();
  return attempt().then(
    () => 'begun',
    async (error) => (await faultOf(Promise.reject(error))).reason,
  );
}

test('a project has one upload at a time, independent of other projects', async () => {
  const uploads = openUploads();
  const first = uploads.begin('one');
  assert.is(await refusal(uploads, 'one'), 'CONCURRENCY_LIMIT');
  assert.is(await refusal(uploads, 'two'), 'begun');
  first[Symbol.dispose]();
  assert.is(await refusal(uploads, 'one'), 'begun');
});

test('an upload counts until its verification ends; a verification is not refused', async () => {
  const uploads = openUploads();
  const bringing = uploads.begin('one');
  const proofs = [uploads.prove('one'), uploads.prove('one')];
  for (const held of [bringing, ...proofs]) {
    assert.is(await refusal(uploads, 'one'), 'CONCURRENCY_LIMIT');
    held[Symbol.dispose]();
  }
  assert.is(await refusal(uploads, 'one'), 'begun');
});

test.run();
