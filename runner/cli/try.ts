/**
 * `tabern try [url]`: one session from start to end. Prints the title of a page and the link of the
 * live view. Without a terminal, where nobody can press Enter, the session is released at once.
 */
import { once } from 'node:events';
import { ConfigError } from '../../proto/common/env.ts';
import { plain } from '../../proto/terminal/text.ts';
import { visit } from '../browser/visit.ts';
import { openApi } from './api.ts';
import { type Cli, CliError, type Options, runCli } from './config.ts';

/** Needs no network. */
const OWN_PAGE = `data:text/html,${encodeURIComponent(
  '<title>tabern works</title><h1>tabern works</h1><p>This page is in a browser of your own.',
)}`;
/** In seconds: for a forgotten session. Ours. */
const TIMEOUT_S = 900;

export function run(url: string | undefined, options: Options): Promise<number> {
  return runCli(options, (cli) => tryOut(url, cli));
}

async function tryOut(url: string | undefined, cli: Cli): Promise<number> {
  if (url !== undefined && !URL.canParse(url)) {
    throw new ConfigError('the page must be a whole URL, such as https://example.org/');
  }
  const api = openApi(cli);
  const session = await api.post('/v1/sessions', { timeout: TIMEOUT_S });
  const path = `/v1/sessions/${encodeURIComponent(String(session['id']))}`;
  cli.say(`session ${plain(session['id'])}`);
  try {
    const page = await visit(String(session['connectUrl']), url ?? OWN_PAGE).catch((error) => {
      throw new CliError(`the page cannot be opened: ${plain((error as Error).message)}`);
    });
    cli.print(plain(page.title));
    const { debuggerFullscreenUrl } = await api.get(`${path}/debug`);
    cli.print(plain(debuggerFullscreenUrl));
    if (process.stdin.isTTY) {
      cli.say('press Enter to end the session');
      await once(process.stdin, 'data');
      process.stdin.unref();
    }
    await page.close();
  } finally {
    await api.post(path, { status: 'REQUEST_RELEASE' });
  }
  return 0;
}
