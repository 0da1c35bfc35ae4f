/** Which commands reach Chrome: each rule with a command that passes and one that is refused. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type Decision, decide, isOpenUrl } from '../../../../runner/browser/cdp/command-policy.ts';

const rules = suite('runner/browser/cdp/command-policy');

const context = {
  downloads: '/data/downloads',
  uploads: '/data/uploads',
  owns: (id: string) => id === 'mine',
};

function decisionOn(method: string, params?: Record<string, unknown>): Decision {
  return decide({ id: 1, method, ...(params ? { params } : {}) }, context);
}

function paramsOf(decision: Decision): unknown {
  return decision.kind === 'rewritten' ? decision.command.params : decision.kind;
}

rules('commands that end the browser, open programs or reveal the machine are refused', () => {
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
  for (const method of refused) assert.is(decisionOn(method).kind, 'refuse', method);
});

rules('ordinary commands pass unchanged', () => {
  const methods = ['Runtime.evaluate', 'Page.captureScreenshot', 'Target.getTargets', 'Page.crash'];
  for (const method of [...methods, 'constructor', '__proto__.x', 'toString', '']) {
    assert.is(decisionOn(method, {}).kind, 'allow', method);
  }
});

rules('only web URLs are opened, however they are spelled', () => {
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
    assert.is(decisionOn(method, { url: 'file:///x' }).kind, 'refuse', method);
    assert.is(decisionOn(method, { url: 'http://a' }).kind, 'allow', method);
  }
  assert.is(decisionOn('Target.createTarget', { url: '' }).kind, 'allow');
});

rules('an invalid URL is left to Chrome, unless its parser might find a refused scheme', () => {
  for (const url of ['not a url', '//x', 'http://[', '', ' HTTP://[', '/etc/passwd', 'a b']) {
    assert.is(decisionOn('Page.navigate', { url }).kind, 'allow', url);
  }
  for (const url of ['file://[', ' \u0001fi\tle://[', 'chrome://[', 'FILE://a b/']) {
    assert.not(URL.canParse(url), url);
    assert.is(decisionOn('Page.navigate', { url }).kind, 'refuse', url);
  }
});

rules('downloads go to the session directory', () => {
  const asked = { behavior: 'allow', downloadPath: '/etc', eventsEnabled: true };
  assert.equal(paramsOf(decisionOn('Browser.setDownloadBehavior', asked)), {
    behavior: 'allowAndName',
    downloadPath: '/data/downloads',
    eventsEnabled: true,
  });
  assert.equal(paramsOf(decisionOn('Page.setDownloadBehavior', asked)), {
    ...asked,
    downloadPath: '/data/downloads',
  });
  const denied = { behavior: 'deny', downloadPath: '/etc' };
  assert.equal(paramsOf(decisionOn('Browser.setDownloadBehavior', denied)), { behavior: 'deny' });
});

rules('sessions are flat', () => {
  const nested = { targetId: 't', flatten: false };
  assert.equal(paramsOf(decisionOn('Target.attachToTarget', nested)), {
    targetId: 't',
    flatten: true,
  });
  assert.equal(paramsOf(decisionOn('Target.setAutoAttach', { autoAttach: true })), {
    autoAttach: true,
    flatten: true,
  });
});

rules('a client detaches its own sessions only', () => {
  assert.is(decisionOn('Target.detachFromTarget', { sessionId: 'mine' }).kind, 'allow');
  const other = decisionOn('Target.detachFromTarget', { sessionId: 'other' });
  assert.equal(other, { kind: 'refuse', code: -32602, why: 'No session with given id' });
});

rules('the proxy of a browser context is a route, and never Chrome’s', () => {
  const made = decisionOn('Target.createBrowserContext', {
    disposeOnDetach: true,
    proxyServer: 'socks5://u:s@p.test',
    proxyBypassList: 'a.test',
  });
  assert.is(made.kind, 'proxied');
  const { command, route } = made as Extract<Decision, { kind: 'proxied' }>;
  assert.equal(command.params, { disposeOnDetach: true });
  assert.is(route.via?.host, 'p.test');
  for (const params of [{ proxyServer: 'direct://' }, { proxyBypassList: '*' }]) {
    assert.equal(paramsOf(decisionOn('Target.createBrowserContext', params)), {});
  }
  assert.is(decisionOn('Target.createBrowserContext', { disposeOnDetach: true }).kind, 'allow');
  assert.is(decisionOn('Target.createBrowserContext', { proxyServer: 'ftp://p' }).kind, 'refuse');
});

rules('a page gets uploads by the path that clients use', () => {
  const named = { nodeId: 1, files: ['/tmp/.uploads/a b.txt', '/data/uploads/c'] };
  const placed = { nodeId: 1, files: ['/data/uploads/a b.txt', '/data/uploads/c'] };
  for (const [method, wrap] of [
    ['DOM.setFileInputFiles', (files: object) => files],
    ['Input.dispatchDragEvent', (data: object) => ({ type: 'drop', data })],
  ] as const) {
    const decision = decisionOn(method, wrap(named) as Record<string, unknown>);
    assert.is(decision.kind, 'rewritten');
    assert.equal(decision.kind === 'rewritten' && decision.command.params, wrap(placed));
  }
  const out = decisionOn('DOM.setFileInputFiles', { files: ['/tmp/.uploads/../../etc/passwd'] });
  assert.is(out.kind, 'refuse');
});

rules('the session’s extension can be listed', () => {
  assert.is(decisionOn('Extensions.getExtensions', {}).kind, 'allow');
});

rules('a page gets uploads of the session only', () => {
  const give = (files: unknown): string[] => [
    decisionOn('DOM.setFileInputFiles', { files }).kind,
    decisionOn('Input.dispatchDragEvent', { data: { files } }).kind,
  ];
  assert.equal(give(['/data/uploads/a.txt']), ['allow', 'allow']);
  const closed = [['/etc/passwd'], ['/data/uploads/../../etc/passwd'], '/etc/passwd', [1]];
  for (const files of closed) assert.equal(give(files), ['refuse', 'refuse'], String(files));
});

rules('tracing stays within the browser', () => {
  assert.is(decisionOn('Tracing.start', { categories: 'x' }).kind, 'allow');
  assert.is(decisionOn('Tracing.start', { tracingBackend: 'system' }).kind, 'refuse');
  assert.is(decisionOn('Tracing.start', { perfettoConfig: 'x' }).kind, 'refuse');
});

rules('Browser.close ends the client, not the browser', () => {
  assert.is(decisionOn('Browser.close').kind, 'leave');
});

rules.run();
