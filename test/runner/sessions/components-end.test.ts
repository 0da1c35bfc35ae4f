/** The components of a session together: the order in which they close. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { zstdDecompressSync } from 'node:zlib';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { componentsOf } from '../../../runner/sessions/components.ts';
import type { Context } from '../../../runner/sessions/context.ts';
import { openSession } from '../../../runner/sessions/session.ts';
import { BROWSERS, NO_HANDOFFS } from '../../support/runner/browsers.ts';
import { testLease, testRunner } from '../../support/runner/lease.ts';
import { tempDirectory } from '../../support/temp.ts';
import { launchOne, log } from '../browser/lab.ts';

const test = suite('runner/sessions/components-end');
const never = new AbortController().signal;

test("a warning of a context's save is in the log", async () => {
  await using dir = tempDirectory();
  const profileDir = join(dir.path, 'profile');
  await mkdir(profileDir);
  const lines: string[] = [];
  const lease = testLease('lease', {
    async append(entry) {
      if (entry.kind === 'chunk') lines.push(zstdDecompressSync(entry.chunk.entries).toString());
      return false;
    },
  });
  const now = Date.now;
  const resources = {
    ...BROWSERS,
    handoffs: NO_HANDOFFS,
    runner: testRunner({ runDir: dir.path, log, now }),
  };
  const work = {
    sessionId: 's',
    projectId: 'p',
    sessionParamsJson: '',
    extension: undefined,
    moreExtensions: [],
    caCertificates: [],
  };
  const { components, chromeOptions, warn } = componentsOf(work, lease, resources);
  const context: Context = {
    profileDir,
    persist: true,
    restore: async () => {},
    save: async () => warn('the context was not saved'),
    notSaved: () => {},
    [Symbol.asyncDispose]: async () => {},
  };
  const chromes = { take: () => launchOne({ runDir: dir.path, allow: [], profileDir }) };
  const loadContext = async () => context;
  const options = { chromes, log, now, loadContext, chromeOptions, components };
  const session = await openSession(options, never);
  await session.close(1000, 'over', true).finally(session.discard);
  assert.match(lines.join(), /the context was not saved/);
});

test.run();
