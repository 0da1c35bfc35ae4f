/** Which commands reach Chrome: each rule with what passes it and what breaks it. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isOpenUrl, police, type Verdict } from '../../../../runner/browser/cdp/command-policy.ts';

const rules = suite('runner/browser/cdp/command-policy');

const beat = {
  downloads: '/data/downloads',
  uploads: '/data/uploads',
  owns: (id: string) => id === 'mine',
};

function judge(method: string, params?: Record<string, unknown>): Verdict {
  return police({ id: 1, method, ...(params ? { params } : {}) }, beat);
}

function paramsOf(verdict: Verdict): unknown {
  return verdict.kind === 'rewritten' ? verdict.command.params : verdict.kind;
}

rules('what ends, opens or tells about the machine is refused', () => {
  const refused = [
    'Browser.crash',
    'Browser.crashGpuProcess',
    'Browser.executeBrowserCommand',
    'Browser.getBrowserCommandLine',
    'Target.exposeDevToolsProtocol',
    'Target.sendMessageToTarget',
    'Target.setRemoteLocations',
    'Target.openDevTools',
    'Browser.setDockTile',
    'Browser.addPrivacySandboxEnrollmentOverride',
    'Memory.simulatePressureNotification',
    'Memory.setPressureNotificationsSuppressed',
    'Memory.getBrowserSamplingProfile',
    'CrashReportContext.getEntries',
    'Cast.startDesktopMirroring',
    'Tethering.bind',
    'SystemInfo.getInfo',
    'SystemInfo.getProcessInfo',
    'Extensions.loadUnpacked',
    'Extensions.uninstall',
    'PWA.install',
    'PWA.launchFilesInApp',
  ];
  for (const method of refused) assert.is(judge(method).kind, 'refuse', method);
});

rules('ordinary commands pass as they are', () => {
  const methods = ['Runtime.evaluate', 'Page.captureScreenshot', 'Target.getTargets', 'Page.crash'];
  for (const method of [...methods, 'constructor', '__proto__.x', 'toString', '']) {
    assert.is(judge(method, {}).kind, 'allow', method);
  }
});

rules('only web URLs are opened, however they are written', () => {
  const open = [
    ...['http://a/', 'HTTPS://a', 'data:text/html,x', 'blob:http://a/1'],
    ...['about:blank', 'about:blank#x', 'about:srcdoc', 'chrome-extension://abc/page.html'],
  ];
  const closed = [
    'file:///etc/passwd',
    ' file:///etc/passwd',
    'fi\tle:///etc/passwd',
    '\u0001FILE:///etc/passwd',
    'chrome://version',
    'about:version',
    'About:Flags',
    'devtools://devtools/x',
    'view-source:file:///etc/passwd',
    'filesystem:file:///x',
    'javascript:1',
  ];
  for (const url of [...open, 'view-source:https://a/']) assert.ok(isOpenUrl(url), url);
  for (const url of closed) assert.not(isOpenUrl(url), url);
  const opening = [
    ...['Page.navigate', 'Target.createTarget', 'Network.loadNetworkResource'],
    ...['Fetch.continueRequest', 'Network.continueInterceptedRequest'],
  ];
  for (const method of opening) {
    assert.is(judge(method, { url: 'file:///x' }).kind, 'refuse', method);
    assert.is(judge(method, { url: 'http://a' }).kind, 'allow', method);
  }
  assert.is(judge('Target.createTarget', { url: '' }).kind, 'allow');
});

rules('Chrome itself answers what is no URL, unless its parser might find a closed scheme', () => {
  for (const url of ['not a url', '//x', 'http://[', '', ' HTTP://[', '/etc/passwd', 'a b']) {
    assert.is(judge('Page.navigate', { url }).kind, 'allow', url);
  }
  for (const url of ['file://[', ' \u0001fi\tle://[', 'chrome://[', 'FILE://a b/']) {
    assert.not(URL.canParse(url), url);
    assert.is(judge('Page.navigate', { url }).kind, 'refuse', url);
  }
});

rules('downloads go to the session directory', () => {
  const asked = { behavior: 'allow', downloadPath: '/etc', eventsEnabled: true };
  assert.equal(paramsOf(judge('Browser.setDownloadBehavior', asked)), {
    behavior: 'allowAndName',
    downloadPath: '/data/downloads',
    eventsEnabled: true,
  });
  assert.equal(paramsOf(judge('Page.setDownloadBehavior', asked)), {
    ...asked,
    downloadPath: '/data/downloads',
  });
  const denied = { behavior: 'deny', downloadPath: '/etc' };
  assert.equal(paramsOf(judge('Browser.setDownloadBehavior', denied)), { behavior: 'deny' });
});

rules('sessions are flat', () => {
  const nested = { targetId: 't', flatten: false };
  assert.equal(paramsOf(judge('Target.attachToTarget', nested)), { targetId: 't', flatten: true });
  assert.equal(paramsOf(judge('Target.setAutoAttach', { autoAttach: true })), {
    autoAttach: true,
    flatten: true,
  });
});

rules('a client detaches its own sessions only', () => {
  assert.is(judge('Target.detachFromTarget', { sessionId: 'mine' }).kind, 'allow');
  const other = judge('Target.detachFromTarget', { sessionId: 'other' });
  assert.equal(other, { kind: 'refuse', code: -32602, why: 'No session with given id' });
});

rules('the proxy of a browser context is a route, and never Chrome’s', () => {
  const made = judge('Target.createBrowserContext', {
    disposeOnDetach: true,
    proxyServer: 'socks5://u:s@p.test',
    proxyBypassList: 'a.test',
  });
  assert.is(made.kind, 'proxied');
  const { command, route } = made as Extract<Verdict, { kind: 'proxied' }>;
  assert.equal(command.params, { disposeOnDetach: true });
  assert.is(route.via?.host, 'p.test');
  for (const params of [{ proxyServer: 'direct://' }, { proxyBypassList: '*' }]) {
    assert.equal(paramsOf(judge('Target.createBrowserContext', params)), {});
  }
  assert.is(judge('Target.createBrowserContext', { disposeOnDetach: true }).kind, 'allow');
  assert.is(judge('Target.createBrowserContext', { proxyServer: 'ftp://p' }).kind, 'refuse');
});

rules('a page is given uploads by the name that clients know', () => {
  const named = { nodeId: 1, files: ['/tmp/.uploads/a b.txt', '/data/uploads/c'] };
  const placed = { nodeId: 1, files: ['/data/uploads/a b.txt', '/data/uploads/c'] };
  for (const [method, wrap] of [
    ['DOM.setFileInputFiles', (files: object) => files],
    ['Input.dispatchDragEvent', (data: object) => ({ type: 'drop', data })],
  ] as const) {
    const verdict = judge(method, wrap(named) as Record<string, unknown>);
    assert.is(verdict.kind, 'rewritten');
    assert.equal(verdict.kind === 'rewritten' && verdict.command.params, wrap(placed));
  }
  const out = judge('DOM.setFileInputFiles', { files: ['/tmp/.uploads/../../etc/passwd'] });
  assert.is(out.kind, 'refuse');
});

rules('the session’s extension can be asked for', () => {
  assert.is(judge('Extensions.getExtensions', {}).kind, 'allow');
});

rules('a page is given uploads of the session only', () => {
  const give = (files: unknown): string[] => [
    judge('DOM.setFileInputFiles', { files }).kind,
    judge('Input.dispatchDragEvent', { data: { files } }).kind,
  ];
  assert.equal(give(['/data/uploads/a.txt']), ['allow', 'allow']);
  const closed = [['/etc/passwd'], ['/data/uploads/../../etc/passwd'], '/etc/passwd', [1]];
  for (const files of closed) assert.equal(give(files), ['refuse', 'refuse'], String(files));
});

rules('tracing stays within the browser', () => {
  assert.is(judge('Tracing.start', { categories: 'x' }).kind, 'allow');
  assert.is(judge('Tracing.start', { tracingBackend: 'system' }).kind, 'refuse');
  assert.is(judge('Tracing.start', { perfettoConfig: 'x' }).kind, 'refuse');
});

rules('Browser.close is the end of the client, not of the browser', () => {
  assert.is(judge('Browser.close').kind, 'leave');
});

rules.run();
