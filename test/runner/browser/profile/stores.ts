/** A site that keeps something in every store of a profile, and how a page is made to. */
import { createServer } from 'node:http';
import { attach } from '../../../../runner/browser/cdp/target-session.ts';
import type { Chrome } from '../../../../runner/browser/launch.ts';
import { listen } from '../lab.ts';

/** A site whose first answer sets cookies, with a service worker. */
export async function openSite() {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.url} ${request.headers.cookie ?? ''}`);
    if (request.url === '/worker.js') {
      response.writeHead(200, { 'content-type': 'text/javascript' });
      response.end("addEventListener('fetch', () => {});");
      return;
    }
    response.writeHead(200, {
      'content-type': 'text/html',
      ...(request.url === '/in'
        ? { 'set-cookie': ['kept=1; Max-Age=9999', 'session=2; HttpOnly; Path=/; SameSite=Lax'] }
        : {}),
    });
    response.end('<!doctype html><title>site</title>');
  });
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}`,
    /** Another origin at the same place. */
    other: `http://localhost:${port}`,
    asked,
    [Symbol.dispose]: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Goes there in the first page, runs the expression in it, and gives its value. */
export async function at(chrome: Chrome, url: string, expression: string): Promise<unknown> {
  const { targetInfos } = await chrome.pipe.call('Target.getTargets');
  const page = (targetInfos as { type: string; targetId: string }[]).find(
    ({ type }) => type === 'page',
  );
  await using attached = await attach(chrome.pipe, page?.targetId ?? '');
  const loaded = Promise.withResolvers<void>();
  attached.on('Page.loadEventFired', () => loaded.resolve());
  await attached.call('Page.enable');
  await attached.call('Page.navigate', { url });
  await loaded.promise;
  const { result, exceptionDetails } = await attached.call('Runtime.evaluate', {
    expression: `(async () => { ${expression} })()`,
    awaitPromise: true,
    returnByValue: true,
  });
  if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails));
  return (result as { value: unknown }).value;
}

export const WRITE = `
  localStorage.setItem('local', 'L');
  sessionStorage.setItem('session', 'S');
  await navigator.serviceWorker.register('/worker.js');
  await navigator.serviceWorker.ready;
  const db = await new Promise((done, fail) => {
    const asked = indexedDB.open('db', 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore('store');
    asked.onsuccess = () => done(asked.result);
    asked.onerror = () => fail(asked.error);
  });
  await new Promise((done) => {
    const change = db.transaction('store', 'readwrite');
    change.objectStore('store').put('I', 'key');
    change.oncomplete = done;
  });
  db.close();`;
export const READ = `
  const db = await new Promise((done, fail) => {
    const asked = indexedDB.open('db', 1);
    asked.onsuccess = () => done(asked.result);
    asked.onerror = () => fail(asked.error);
  });
  const indexed = db.objectStoreNames.length === 0 ? null : await new Promise((done) => {
    const asked = db.transaction('store').objectStore('store').get('key');
    asked.onsuccess = () => done(asked.result);
  });
  db.close();
  const workers = await navigator.serviceWorker.getRegistrations();
  return {
    local: localStorage.getItem('local'),
    session: sessionStorage.getItem('session'),
    indexed,
    workers: workers.length,
    history: history.length,
  };`;
