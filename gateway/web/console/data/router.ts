/** The address of the page is its state. */
import { signal } from '@preact/signals';
import { ROOT, type Route, routeOf, SHARE } from './route.ts';

export const route = signal<Route>({
  page: 'overview',
  projectId: '',
  id: '',
  query: new URLSearchParams(),
});

/** Shows the current address, and follows links and the Back button. */
export function startRouter(): void {
  const read = () => {
    route.value = routeOf(location.pathname, location.search);
  };
  addEventListener('popstate', read);
  document.addEventListener('click', (event) => {
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    const isOther = event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0;
    if (link === null || isOther || link.target !== '' || link.hasAttribute('download')) return;
    if (link.origin !== location.origin || !link.pathname.startsWith(ROOT)) return;
    event.preventDefault();
    go(link.pathname + link.search);
  });
  read();
}

/** Opens a path of the console. */
export function go(path: string): void {
  if (path === location.pathname + location.search) return;
  history.pushState(null, '', kept(path));
  route.value = routeOf(location.pathname, location.search);
  scrollTo(0, 0);
}

/** Changes parameters of the current address; undefined or empty removes one. */
export function setQuery(changes: Record<string, string | undefined>, isStep = false): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === '') query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  const path = text === '' ? location.pathname : `${location.pathname}?${text}`;
  if (path === location.pathname + location.search) return;
  if (isStep) history.pushState(null, '', kept(path));
  else history.replaceState(null, '', kept(path));
  route.value = routeOf(location.pathname, location.search);
}

/** The fragment of a link to a session is its credential: the page stays readable when reloaded. */
function kept(path: string): string {
  const isShare = location.pathname === SHARE && path.split('?')[0] === SHARE;
  return isShare ? path + location.hash : path;
}
