/** Its Chrome has no access that the handler does not have. */
import { type Attack, refused } from '../lab/attack.ts';

const CDP = `const socket = new WebSocket(ctx.session.connectUrl);
  const waiting = new Map(); const seen = []; let last = 0;
  socket.addEventListener('message', ({ data }) => {
    const said = JSON.parse(data);
    if (said.id === undefined) seen.push(said); else waiting.get(said.id)(said);
  });
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve); socket.addEventListener('error', reject);
  });
  const call = async (method, params = {}, sessionId) => {
    const id = ++last;
    const { promise, resolve } = Promise.withResolvers();
    waiting.set(id, resolve);
    socket.send(JSON.stringify({ id, method, params, sessionId }));
    const { error, result } = await promise;
    if (error) throw new Error(error.message);
    return result;
  };
  const { targetId } = await call('Target.createTarget', { url: 'about:blank' });
  const { sessionId } = await call('Target.attachToTarget', { targetId, flatten: true });
  const page = (method, params) => call(method, params, sessionId);
  const go = async (url) => {
    await page('Runtime.evaluate', { expression: 'window.isOld = true' });
    const { errorText } = await page('Page.navigate', { url });
    if (errorText) throw new Error(errorText);
    const expression = "!window.isOld && document.readyState === 'complete' && " +
      'document.body.innerText';
    let text = false; // the navigation is answered before the document is there
    while (text === false) {
      text = (await page('Runtime.evaluate', { expression })).result.value;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const isRefusal = /^$|ERR_|is not reachable from here/.test(text);
    if (isRefusal) throw new Error(text || 'an empty page');
    return text;
  };
  const run = async (expression) => {
    const options = { expression, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = await page('Runtime.evaluate', options);
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description);
    return result.value;
  };
  const done = async (said) => { await call('Target.closeTarget', { targetId });
    socket.close(); return said; };`;
const pages = (...urls: string[]): string => `${CDP}
  const said = {};
  for (const url of [${urls.join()}]) said[url] = await attempt(() => go(url));
  return done(said);`;

export const browser: readonly Attack[] = [
  {
    name: 'open a file of the machine as a page',
    body: pages("'file:///etc/shadow'", "'file:///etc/passwd'", "'view-source:file:///etc/passwd'"),
    ending: refused,
  },
  {
    name: 'attach a file of the machine to a form',
    body: `${CDP}
      await page('Runtime.evaluate', { expression:
        "document.body.innerHTML = '<input type=file>'" });
      const { root } = await page('DOM.getDocument');
      const where = { nodeId: root.nodeId, selector: 'input' };
      const { nodeId } = await page('DOM.querySelector', where);
      return done(await all({ form: async () => {
        await page('DOM.setFileInputFiles', { nodeId, files: ['/etc/passwd', params.secret] });
        return run("document.querySelector('input').files[0].text()");
      } }));`,
    ending: refused,
  },
  {
    name: 'open a service of this machine as a page',
    body: pages("'http://127.0.0.1:' + params.port", "'http://localhost:' + params.port"),
    ending: refused,
  },
  {
    name: 'open the debugging port of another browser',
    body: pages(
      "'http://127.0.0.1:' + params.port + '/json/version'",
      "'http://[::1]:9222/json/version'",
    ),
    ending: refused,
  },
  {
    name: 'request the metadata service of a cloud from a page',
    body: pages("'http://169.254.169.254/latest/meta-data/'"),
    ending: refused,
  },
  {
    name: 'fetch from a service of this machine by script',
    body: `${CDP}
      const site = 'http://127.0.0.1:' + params.port;
      return done(await all({ fetch: () => run("fetch('" + site + "').then((r) => r.text())"),
        blind: () => run("fetch('" + site + "', { mode: 'no-cors' })" +
          ".then((r) => Promise.reject('an answer that cannot be read: ' + r.type))") }));`,
    ending: refused,
  },
  {
    name: 'download into a directory of the machine',
    body: `${CDP}
      const where = { behavior: 'allow', downloadPath: params.dataDir };
      const said = await attempt(() => call('Browser.setDownloadBehavior', where));
      await attempt(() => page('Page.setDownloadBehavior', where));
      await attempt(() => run("const a = document.createElement('a');" +
        "a.href = 'data:application/octet-stream,x'; a.download = 'planted'; a.click()"));
      return done({ planted: params.dataDir && 'no: ' + said });`,
    ending: refused,
  },
  {
    name: 'crash the browser, or read its command line',
    body: `${CDP}
      return done(await all({ crash: () => call('Browser.crash'),
        command: () => call('Browser.getBrowserCommandLine'),
        system: () => call('SystemInfo.getInfo') }));`,
    ending: refused,
  },
  {
    name: 'bypass its proxy',
    body: `${CDP}
      const site = 'http://127.0.0.1:' + params.port;
      const inside = (how) => async () => {
        const { browserContextId } = await call('Target.createBrowserContext', how);
        const blank = { url: 'about:blank', browserContextId };
        const { targetId } = await call('Target.createTarget', blank);
        const { sessionId } = await call('Target.attachToTarget', { targetId, flatten: true });
        const expression = "fetch('" + site + "', { mode: 'no-cors' }).then(() => 'an answer')";
        const asked = { expression, awaitPromise: true, returnByValue: true };
        const { result, exceptionDetails } = await call('Runtime.evaluate', asked, sessionId);
        if (exceptionDetails) throw new Error(exceptionDetails.exception?.description);
        return result.value;
      };
      return done(await all({ direct: inside({ proxyServer: 'direct://' }),
        bypass: inside({ proxyBypassList: '*' }),
        loopback: inside({ proxyServer: site }),
        both: inside({ proxyServer: site, proxyBypassList: '127.0.0.1' }) }));`,
    ending: refused,
  },
];
