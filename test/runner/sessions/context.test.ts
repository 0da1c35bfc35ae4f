/** A failed save is only a warning: with a Chrome and a core controlled by the test. */
import { existsSync } from 'node:fs';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { SaveContextResponse } from '../../../proto/gen/tabern/v1/runners.pb.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import type { Chrome } from '../../../runner/browser/launch.ts';
import { openContext } from '../../../runner/sessions/context.ts';
import { PAIR } from '../../proto/archives/sealed.ts';
import { testLease, testRunner } from '../../support/runner/lease.ts';
import { tempDirectory } from '../../support/temp.ts';
import { log } from '../browser/lab.ts';

const contexts = suite('runner/sessions/context');

type Scene = { exit?: number; upload?: () => void; saved?: SaveContextResponse };

/** One session that saves; gives its warnings, and what core got. */
async function save({ exit = 0, upload, saved }: Scene) {
  await using dir = tempDirectory();
  const warnings: string[] = [];
  const acts: string[] = [];
  const blobs = {
    beginUpload: async () => ({}),
    async writeBlob(parts: AsyncIterable<{ part: { $case: string } }>) {
      upload?.();
      for await (const { part } of parts) if (part.$case === 'header') acts.push('upload');
      return { blobId: 'blob' };
    },
  };
  const runners = {
    async saveContext({ blobId, leaseId }: { blobId: string; leaseId: string }) {
      acts.push(`save ${blobId} under ${leaseId}`);
      return saved ?? { saved: true, replaced: false };
    },
  };
  const answers: Record<string, unknown> = {
    'Storage.getCookies': { cookies: [] },
    'Target.getTargets': { targetInfos: [] },
    'Target.getBrowserContexts': { browserContextIds: [] },
  };
  const chrome = {
    pipe: { call: async (method: string) => answers[method] },
    close: async () => void acts.push('close'),
    exited: Promise.resolve({ code: exit, signal: null }),
  } as unknown as Chrome;
  const work = {
    contextId: 'c',
    persist: true,
    blobId: undefined,
    keys: Buffer.alloc(0),
    publicKey: PAIR.publicKey,
  };
  const context = await openContext(
    work,
    {
      runner: testRunner({ clients: { blobs, runners }, runDir: dir.path, log }),
      lease: testLease('lease'),
      warn: (message) => warnings.push(message),
    },
    new AbortController().signal,
  );
  await writeFile(join(context.profileDir, 'Local State'), '{}');
  await context.save(chrome);
  await context[Symbol.asyncDispose]();
  assert.equal(await readdir(dir.path), [], 'nothing is left on this machine');
  assert.is(existsSync(context.profileDir), false);
  return { warnings, acts };
}

contexts('a save is uploaded and becomes the content after Chrome has closed', async () => {
  const { warnings, acts } = await save({});
  assert.equal(acts, ['close', 'upload', 'save blob under lease']);
  assert.equal(warnings, []);
});

contexts('a killed browser saves nothing', async () => {
  const { warnings, acts } = await save({ exit: 137 });
  assert.equal(acts, ['close']);
  assert.match(warnings.join(), /was not saved: the browser did not end by itself/);
});

contexts('a refusal or failure of core is a warning that reveals no internal fact', async () => {
  const full = await save({
    upload() {
      throw new Fault('BODY_TOO_LARGE', 'too much');
    },
  });
  assert.equal(full.acts, ['close']);
  assert.match(full.warnings.join(), /was not saved: too much; its content is what it was/);
  const broken = await save({
    upload() {
      throw new Error('ENOSPC /srv/x');
    },
  });
  assert.match(broken.warnings.join(), /was not saved/);
  assert.not.match(broken.warnings.join(), /srv/);
});

contexts('a deleted context, and a save of another session, are warnings', async () => {
  const deleted = await save({ saved: { saved: false, replaced: false } });
  assert.match(deleted.warnings.join(), /was not saved: it was deleted meanwhile/);
  const replaced = await save({ saved: { saved: true, replaced: true } });
  assert.equal(replaced.warnings.length, 1);
  assert.match(replaced.warnings.join(), /another session saved this context/);
  const older = await save({ saved: { saved: false, replaced: true } });
  assert.equal(older.warnings.length, 1);
  assert.match(older.warnings.join(), /not saved: another session has saved it since/);
  assert.not.match(older.warnings.join(), /what it was/);
});

contexts.run();
