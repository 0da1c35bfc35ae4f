/** A small web site on 127.0.0.1 for handlers to browse: titles, links, a slow page, a redirect. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';

const PAGES: Record<string, { title: string; links: readonly string[] }> = {
  '/': { title: 'The inn', links: ['/rooms', '/kitchen', '/moved'] },
  '/rooms': { title: 'Rooms', links: ['/', '/rooms/1', '/rooms/2'] },
  '/rooms/1': { title: 'Room 1', links: ['/rooms'] },
  '/rooms/2': { title: 'Room 2 & its “view”', links: ['/rooms'] },
  '/kitchen': { title: 'Kitchen', links: ['/'] },
};

export type Site = {
  /** http://127.0.0.1:<port> */
  url: string;
  /** Requested paths, in order. */
  visits: readonly string[];
} & AsyncDisposable;

/**
 * Starts the site. Besides its pages: /moved redirects to /rooms, /slow?ms=500 responds late,
 * /silent never, /crash drops the connection; all else is 404.
 */
export async function startSite(): Promise<Site> {
  const visits: string[] = [];
  const late = new Set<NodeJS.Timeout>();
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://site');
    visits.push(pathname);
    if (pathname === '/slow') {
      const answer = () => page(response, 200, 'Slow', ['/']);
      late.add(setTimeout(answer, Number(searchParams.get('ms') ?? '500')));
    } else if (pathname === '/crash') {
      request.socket.destroy();
    } else if (pathname === '/moved') {
      response.writeHead(302, { location: '/rooms' }).end();
    } else if (pathname !== '/silent') {
      const found = PAGES[pathname];
      page(response, found ? 200 : 404, found?.title ?? 'Not here', found?.links ?? []);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP server has no port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    visits,
    async [Symbol.asyncDispose]() {
      for (const timer of late) clearTimeout(timer);
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function page(
  response: ServerResponse,
  code: number,
  title: string,
  links: readonly string[],
): void {
  const anchors = links.map((path) => `<li><a href="${path}">${path}</a></li>`).join('');
  const text = title.replaceAll('&', '&amp;');
  const head = `<!doctype html><title>${text}</title><link rel="icon" href="data:,">`;
  response.writeHead(code, { 'content-type': 'text/html; charset=utf-8' });
  response.end(`${head}<h1>${text}</h1><ul>${anchors}</ul>`);
}
