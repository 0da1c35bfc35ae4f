/**
 * What survives from one real Chrome to the next through the stored form, and which profiles start
 * all the same. On every engine of this machine.
 */
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { readHead, unwrapKeys } from '../../../../proto/archives/context-format.ts';
import { sealProfile } from '../../../../proto/archives/context-writer.ts';
import type { Pipe } from '../../../../runner/browser/cdp/pipe.ts';
import type { Chrome } from '../../../../runner/browser/launch.ts';
import { packProfile, unpackProfile } from '../../../../runner/browser/profile/profile.ts';
import {
  readState,
  restoreState,
  type SessionState,
  takeState,
  writeState,
} from '../../../../runner/browser/profile/session-state.ts';
import { PAIR } from '../../../proto/archives/sealed.ts';
import { type TempDirectory, tempDirectory, writeTree } from '../../../support/temp.ts';
import { launchOne } from '../lab.ts';
import { at, openSite, READ, WRITE } from './stores.ts';

const profile = suite('runner/browser/profile/profile');
const ENGINES = ['/usr/bin/chromium-headless-shell', '/usr/lib/chromium/chromium'];
const allow = ['127.0.0.0/8'];

/** Ends Chrome as a saved session does; gives a directory with what the stored form holds. */
async function through(dir: TempDirectory, from: string, chrome: Chrome): Promise<string> {
  const state = await readState(chrome.pipe);
  await chrome.close();
  await writeState(from, state);
  const path = join(dir.path, 'sealed');
  await sealProfile(packProfile(from), PAIR.publicKey, path);
  const to = join(dir.path, 'next');
  await unpackProfile({ path, keys: unwrapKeys(await readHead(path), PAIR.privateKey) }, to);
  return to;
}

async function newProfile(dir: TempDirectory): Promise<string> {
  const path = join(dir.path, 'first');
  await mkdir(path);
  return path;
}

const HERE = ENGINES.filter((path) => existsSync(path));
const nameOf = (program: string) => program.split('/').at(-1);

// an invocation's context may be a session's next, which runs in the other engine
for (const [writer, reader] of HERE.flatMap((one) => HERE.map((other) => [one, other] as const))) {
  const name = `${nameOf(writer)}, then ${nameOf(reader)}`;

  profile(`${name}: a login survives, caches do not`, async () => {
    await using dir = tempDirectory();
    using site = await openSite();
    const options = { runDir: dir.path, allow };
    const profileDir = await newProfile(dir);
    const first = await launchOne({ ...options, program: writer, profileDir });
    await at(first, `${site.other}/`, "sessionStorage.setItem('session', 'elsewhere')");
    await at(first, `${site.url}/in`, WRITE);
    const next = await through(dir, profileDir, first);
    const state = await takeState(next);
    assert.equal(
      state?.cookies.map((cookie) => `${cookie.name}=${cookie.value}`),
      ['session=2'],
    );
    assert.equal(await takeState(next), undefined, 'Chrome sees nothing of ours');
    const second = await launchOne({ ...options, program: reader, profileDir: next });
    assert.equal(await restoreState(second.pipe, state ?? { cookies: [], storage: {} }), []);
    site.asked.length = 0;
    assert.equal(await at(second, `${site.url}/`, READ), {
      local: 'L',
      session: 'S',
      indexed: 'I',
      workers: 1,
      history: 2, // the default page and this one: no visit shows
    });
    const cookies = site.asked.find((line) => line.startsWith('/ ')) ?? '';
    assert.match(cookies, /kept=1/);
    assert.match(cookies, /session=2/);
    const elsewhere = "return sessionStorage.getItem('session')";
    assert.is(await at(second, `${site.other}/`, elsewhere), 'elsewhere');
    const { cookies: all } = await second.pipe.call('Storage.getCookies');
    const restored = (all as Record<string, unknown>[]).find((one) => one['name'] === 'session');
    assert.is(restored?.['httpOnly'], true);
    assert.is(restored?.['session'], true);
    assert.is(restored?.['domain'], '127.0.0.1');
    assert.is(restored?.['sameSite'], 'Lax');
    await second.close();
  });
}

for (const program of HERE) {
  profile(
    `${nameOf(program)}: a profile left locked and dirty by a crash starts cleanly`,
    async () => {
      await using dir = tempDirectory();
      using site = await openSite();
      const options = { runDir: dir.path, allow, program };
      const profileDir = await newProfile(dir);
      const first = await launchOne({ ...options, profileDir });
      await at(first, `${site.url}/in`, WRITE);
      first.kill();
      await first.exited;
      await symlink('other-host-1234', join(profileDir, 'SingletonLock')).catch(() => undefined);
      await writeFile(join(profileDir, 'Last Version'), '99.0.0.0');
      const path = join(dir.path, 'sealed');
      await sealProfile(packProfile(profileDir), PAIR.publicKey, path);
      const next = join(dir.path, 'next');
      await unpackProfile({ path, keys: unwrapKeys(await readHead(path), PAIR.privateKey) }, next);
      const names = await readdir(next);
      assert.equal(
        names.filter((one) => one.startsWith('Singleton')),
        [],
      );
      assert.is(await readFile(join(next, 'Last Version'), 'utf8'), '99.0.0.0');
      const second = await launchOne({ ...options, profileDir: next });
      assert.is(await at(second, `${site.url}/`, 'return document.title'), 'site');
      await second.close();
    },
  );
}

profile('caches, locks, links and pipes are excluded, and unpacked files are private', async () => {
  await using dir = tempDirectory();
  const from = join(dir.path, 'first');
  writeTree(from, {
    'Local State': '{}',
    'Default/Cookies': 'c',
    'Default/Cache/data_0': 'x',
    'Default/Code Cache/js/a': 'x',
    'Default/DawnWebGPUCache/a': 'x',
    'Default/IndexedDB/http_a_0.indexeddb.leveldb/LOCK': '',
    'Default/IndexedDB/http_a_0.indexeddb.leveldb/000003.log': 'i',
    'Default/Service Worker/CacheStorage/a/index': 's',
    'Default/b.tmp': 'x',
    'Crashpad/a': 'x',
    'NativeMessagingHosts/host.json': '{"path":"/bin/sh"}',
    'External Extensions/id.json': '{"external_crx":"/data/profile/a.crx"}',
    SingletonLock: 'x',
  });
  await symlink('/etc/passwd', join(from, 'Default', 'link'));
  const path = join(dir.path, 'sealed');
  await sealProfile(packProfile(from), PAIR.publicKey, path);
  const next = join(dir.path, 'next');
  await unpackProfile({ path, keys: unwrapKeys(await readHead(path), PAIR.privateKey) }, next);
  const found = (await readdir(next, { recursive: true })).sort();
  assert.equal(found, [
    'Default',
    'Default/Cookies',
    'Default/IndexedDB',
    'Default/IndexedDB/http_a_0.indexeddb.leveldb',
    'Default/IndexedDB/http_a_0.indexeddb.leveldb/000003.log',
    'Default/Service Worker',
    'Default/Service Worker/CacheStorage',
    'Default/Service Worker/CacheStorage/a',
    'Default/Service Worker/CacheStorage/a/index',
    'Local State',
  ]);
  for (const name of ['', ...found]) {
    const { mode } = await stat(join(next, name));
    const isDirectory = (mode & 0o170000) === 0o040000;
    assert.is((mode & 0o777).toString(8), isDirectory ? '700' : '600', name);
  }
});

profile('sessionStorage is restored in a slow Chrome', async () => {
  using site = await openSite();
  await using dir = tempDirectory();
  const chrome = await launchOne({ runDir: dir.path, allow });
  try {
    let isLate = true;
    const late: Pipe = {
      ...chrome.pipe,
      write(message) {
        if (message.includes('Page.navigate') && isLate) {
          isLate = false;
          chrome.pipe.pause(dir);
          setTimeout(() => chrome.pipe.resume(dir), 2_500);
        }
        return chrome.pipe.write(message);
      },
    };
    const storage: SessionState['storage'] = { [site.url]: [['key', 'value']] };
    assert.equal(await restoreState(late, { cookies: [], storage }), []);
    const read = `return sessionStorage.getItem('key')`;
    assert.is(await at(chrome, `${site.url}/`, read), 'value');
  } finally {
    await chrome.close();
  }
});

profile('a profile that cannot be unpacked leaves no directory', async () => {
  await using dir = tempDirectory();
  const from = join(dir.path, 'first');
  writeTree(from, { a: 'x' });
  const path = join(dir.path, 'sealed');
  await sealProfile(packProfile(from), PAIR.publicKey, path);
  const next = join(dir.path, 'next');
  const keys = Buffer.alloc(64);
  await unpackProfile({ path, keys }, next).catch(() => undefined);
  assert.is(existsSync(next), false);
});

profile.run();
