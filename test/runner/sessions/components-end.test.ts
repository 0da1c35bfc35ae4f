/** The parts of a session together: what the end of one says of another. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { zstdDecompressSync } from 'node:zlib';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { settingsDeps } from '../../../runner/sessions/browser-settings.ts';
import { type ComponentDeps, componentsOf } from '../../../runner/sessions/components.ts';
import type { Context } from '../../../runner/sessions/context.ts';
import { openSession } from '../../../runner/sessions/session.ts';
import { tempDirectory } from '../../support/temp.ts';
import { launchOne, log } from '../browser/lab.ts';

const test = suite('runner/sessions/components-end');
const never = new AbortController().signal;

test('what the save of a context has to say still stands in the log', async () => {
  await using dir = tempDirectory();
  const profileDir = join(dir.path, 'profile');
  await mkdir(profileDir);
  const lines: string[] = [];
  const runners = {
    async appendSessionLogs({ entries }: { entries: Uint8Array }) {
      lines.push(zstdDecompressSync(entries).toString());
      return { full: false };
    },
  };
  const now = Date.now;
  const deps = {
    clients: { runners, blobs: {} } as unknown as ComponentDeps['clients'],
    call: {},
    leaseId: 'lease',
    runDir: dir.path,
    log,
    now,
    lost: never,
    engine: undefined,
    browsers: settingsDeps({ proxy: undefined, adLists: [] }),
  };
  const work = { sessionId: 's', projectId: 'p', sessionParamsJson: '', extension: undefined };
  const { open: parts, wanted, warn } = componentsOf(work, deps);
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
  const options = { chromes, log, now, loadContext, wanted, parts };
  const session = await openSession(options, never);
  await session.close(1000, 'over', true).finally(session.discard);
  assert.match(lines.join(), /the context was not saved/);
});

test.run();
