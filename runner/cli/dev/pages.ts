/**
 * The page of `tabern dev` in a browser: the run page of the console, built files in a folder that
 * the command is given, and what the page reads.
 *   GET /console, /console/runs/<id>   the page
 *   GET /console/assets/<file>         its built files
 *   GET /console/api/runs              the functions and the newest runs
 *   GET /console/api/runs/<id>         one run
 * The server has checked before that no other site sends the request.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { extname } from 'node:path';
import { CONSOLE_HEADERS } from '../../../proto/network/console-headers.ts';
import type { DevRuns } from './runs.ts';

/** Runs: read here, and started by the server. */
export const RUNS_PATH = '/console/api/runs';
const PAGE = 'dev.html';
const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};
const NO_RUN = 'there is no such run: only the newest ones are kept, until `tabern dev` ends';
const RUN = /^\/console\/api\/runs\/([0-9a-f-]{36})$/;
const SHOWN = /^\/console(?:\/runs\/[0-9a-f-]{36})?\/?$/;

export type DevPages = {
  /** The path of a run's page. */
  pathOf(id: string): string;
  /** Whether the path is one of the page; then it is answered. */
  answer(path: string, response: ServerResponse): boolean;
};

type Sources = { runs: DevRuns; names(): string[] };

/** `folder`: the built console; undefined when it is not built. */
export function openDevPages(folder: URL, { runs, names }: Sources): DevPages | undefined {
  if (!existsSync(new URL(PAGE, folder))) return undefined;
  const assets = new URL('assets/', folder);
  const page = readFileSync(new URL(PAGE, folder));
  // read now: a file is found by its name in this list, never by a path
  const files = new Map(readdirSync(assets).map((name) => [name, new URL(name, assets)]));
  return {
    pathOf: (id) => `/console/runs/${id}`,
    answer(path, response) {
      const file = files.get(path.slice('/console/assets/'.length));
      if (path.startsWith('/console/assets/') && file !== undefined) {
        send(response, extname(file.pathname), readFileSync(file));
      } else if (path === RUNS_PATH) {
        sendJson(response, { functions: names(), runs: runs.list() });
      } else if (SHOWN.test(path)) send(response, '.html', page);
      else {
        const id = RUN.exec(path)?.[1];
        if (id === undefined) return false;
        const run = runs.get(id);
        sendJson(response, run ?? { message: NO_RUN }, run === undefined ? 404 : 200);
      }
      return true;
    },
  };
}

function sendJson(response: ServerResponse, value: object, status = 200): void {
  response.writeHead(status, { ...HEADERS, 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
}

function send(response: ServerResponse, ending: string, bytes: Buffer): void {
  const type = TYPES[ending] ?? 'application/octet-stream';
  response.writeHead(200, { ...HEADERS, 'content-type': type }).end(bytes);
}

const HEADERS = {
  ...CONSOLE_HEADERS,
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
};
