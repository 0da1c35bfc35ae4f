/** Settings without an effect are warnings in the session's log. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  type SessionParams,
  sessionSettings,
  settingsDeps,
} from '../../../runner/sessions/browser-settings.ts';

const test = suite('runner/sessions/settings-warnings');

function warningsOf(params: object): string[] {
  const said: string[] = [];
  const deps = settingsDeps({ proxy: undefined, adLists: [] });
  const warn = (message: string) => void said.push(message);
  sessionSettings(params as SessionParams, undefined, { ...deps, warn });
  return said;
}

test('supported settings cause no warning', () => {
  const viewport = { width: 800, height: 600 };
  assert.equal(warningsOf({ timeout: 60, browserSettings: { viewport, blockAds: true } }), []);
});

test('unknown members are named, at most twenty', () => {
  const params = { ignoredMembers: ['proxy', 'browserSettings.size'] };
  assert.equal(warningsOf(params), [
    'proxy: is no setting of a session',
    'browserSettings.size: is no setting of a session',
  ]);
  const many = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`a${n}`, 1]));
  assert.is(warningsOf({ browserSettings: many }).length, 20);
});

test('unknown members of a sessionConfig are named', () => {
  assert.equal(warningsOf({ keepAlive: true, keepalive: true, [`x${'y'.repeat(100)}`]: 1 }), [
    'keepalive: is no setting of a session',
    `x${'y'.repeat(63)}: is no setting of a session`,
  ]);
  const all = { projectId: 'p', timeout: 60, proxies: [], region: 'local', userMetadata: {} };
  assert.equal(warningsOf({ ...all, proxySettings: {}, browserSettings: {} }), []);
});

test('unsupported settings are named', () => {
  const settings = { extensionId: 'x', engine: 'headless-shell', solveCaptchas: true };
  const said = warningsOf({ browserSettings: settings }).join('\n');
  assert.match(said, /engine: extensions load in chromium alone/);
  assert.match(said, /solveCaptchas: no solver/);
});

test.run();
