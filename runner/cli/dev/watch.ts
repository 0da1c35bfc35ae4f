/** Reports changes of a project's sources, for `tabern dev`. */
import { once } from 'node:events';
import { basename } from 'node:path';
import { watch } from 'chokidar';
import { CliError } from '../config.ts';

/** In milliseconds. Ours: an editor writes a file in several steps, a checkout many files. */
const QUIET_MS = 100;
/** Dependencies, build outputs, hidden files. */
const SKIPPED = /^(?:node_modules|dist|build|coverage|tabern_data|\..*)$/;

type Watching = {
  /** A folder that is not watched: the output of the command. */
  except?: string;
  /** Once for changes in close succession. */
  onChange(): void;
  /** Some folders cannot be watched any more; the message gives the reason. */
  onLost(message: string): void;
};

/** Throws CliError when the machine's limit of watched files is reached. */
export async function watchSources(root: string, watching: Watching): Promise<AsyncDisposable> {
  const { except, onChange, onLost } = watching;
  const watcher = watch(root, {
    ignored: (path) => path !== root && (path === except || SKIPPED.test(basename(path))),
    ignoreInitial: true,
    followSymlinks: false, // a link may lead to a tree of any size
  });
  let timer: NodeJS.Timeout | undefined;
  watcher.on('all', () => {
    clearTimeout(timer);
    timer = setTimeout(onChange, QUIET_MS);
  });
  const close = async (): Promise<void> => {
    await watcher.close();
    clearTimeout(timer);
  };
  try {
    await once(watcher, 'ready'); // rejects on the event `error`
  } catch (error) {
    await close();
    throw readable(error);
  }
  watcher.on('error', (error) => onLost(readable(error).message));
  return { [Symbol.asyncDispose]: close };
}

function readable(error: unknown): Error {
  const { code } = error as NodeJS.ErrnoException;
  if (code !== 'ENOSPC' && code !== 'EMFILE') return error as Error;
  const limits = 'fs.inotify.max_user_watches and fs.inotify.max_user_instances';
  return new CliError(`too many files are watched on this machine; raise ${limits}`);
}
