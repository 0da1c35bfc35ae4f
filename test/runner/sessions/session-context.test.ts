/** A session on a context's profile: a failed first start, and the removal at its end. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Context } from '../../../runner/sessions/context.ts';
import { openSession } from '../../../runner/sessions/session.ts';
import { until } from '../../support/poll.ts';
import { tempDirectory } from '../../support/temp.ts';
import { launchOne, log } from '../browser/lab.ts';

const session = suite('runner/sessions/session-context');
const never = new AbortController().signal;

session('a broken Local State causes a second start, and the session runs', async () => {
  await using dir = tempDirectory();
  const profileDir = join(dir.path, 'profile');
  await mkdir(profileDir);
  await writeFile(join(profileDir, 'Local State'), '{"broken');
  let starts = 0;
  const acts: string[] = [];
  const context: Context = {
    profileDir,
    persist: true,
    restore: async () => void acts.push('restore'),
    save: async () => void acts.push('save'),
    notSaved: (why) => void acts.push(why),
    [Symbol.asyncDispose]: async () => void acts.push('gone'),
  };
  const chromes = {
    async take(wanted: { profileDir?: string }) {
      starts += 1;
      assert.is(wanted.profileDir, profileDir);
      return await launchOne({
        runDir: dir.path,
        allow: [],
        profileDir,
        program: '/usr/bin/chromium-headless-shell',
      });
    },
  };
  const options = { chromes, log, now: Date.now, loadContext: async () => context };
  const opened = await openSession(options, never);
  assert.is(starts, 2);
  await Promise.all([opened.close(1000, 'over', true), opened.close(1001, 'again', false)]);
  await opened.discard();
  assert.equal(acts, ['restore', 'save', 'gone']);
  // the proxy of the first start is opened after its end, and was once left open; so was its wait
  // of 30 s for a page
  const left = () =>
    process.getActiveResourcesInfo().filter((name) => /^TCP|^Timeout$/.test(name)).length;
  await until(() => left() === 0, 20_000); // before that wait is over by itself
});

session(
  'a crash saves no context, with a warning; a session that must not save has none',
  async () => {
    await using dir = tempDirectory();
    for (const isCrash of [true, false]) {
      const acts: string[] = [];
      const profileDir = join(dir.path, String(isCrash));
      await mkdir(profileDir);
      const context: Context = {
        profileDir,
        persist: true,
        restore: async () => {},
        save: async () => void acts.push('save'),
        notSaved: (why) => void acts.push(why),
        [Symbol.asyncDispose]: async () => void acts.push('gone'),
      };
      const chrome = await launchOne({ runDir: dir.path, allow: [], profileDir });
      const chromes = { take: async () => chrome };
      const options = { chromes, log, now: Date.now, loadContext: async () => context };
      const opened = await openSession(options, never);
      if (isCrash) {
        chrome.kill();
        await chrome.pipe.closed;
      }
      await opened.close(1000, 'over', isCrash);
      await opened.discard();
      assert.equal(acts, isCrash ? ['the browser was lost', 'gone'] : ['gone']);
    }
  },
);

session('a directory that cannot be removed rejects all callers of discard', async () => {
  await using dir = tempDirectory();
  const profileDir = join(dir.path, 'profile');
  await mkdir(profileDir);
  const context: Context = {
    profileDir,
    persist: false,
    notSaved: () => {},
    restore: async () => {},
    save: async () => {},
    async [Symbol.asyncDispose]() {
      throw new Error('the disk says no');
    },
  };
  const chrome = await launchOne({ runDir: dir.path, allow: [], profileDir });
  const chromes = { take: async () => chrome };
  const options = { chromes, log, now: Date.now, loadContext: async () => context };
  const opened = await openSession(options, never);
  await opened.close(1000, 'over', false);
  for (const waiting of [opened.discard(), opened.discard()]) {
    const problem = await waiting.then(
      () => undefined,
      (error: Error) => error.message,
    );
    assert.is(problem, 'the disk says no');
  }
});

session.run();
