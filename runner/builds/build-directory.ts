/**
 * The directory of one build. project/ and home/ belong to the tenant and are mounted into jails
 * separately. The archive and the bundle belong to the runner; no jail sees their directory.
 */
import { mkdir, mkdtemp, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { removeTree } from '../common/remove.ts';
import type { Jail } from '../jail/jail.ts';
import { chownTree } from '../jail/spawn.ts';
import { leaseUid } from '../jail/uids.ts';

export type Place = {
  directory: string;
  /** The project's files; node_modules after an install. */
  project: string;
  /** The installer's caches and temporary files. */
  home: string;
  archive: string;
  bundle: string;
  /** The uid of all jails of the build, under a root runner. */
  uid: number | undefined;
};

/** Creates a build's directory in `base`. Dispose of it to remove it. */
export async function openPlace(base: string, jail: Jail): Promise<Place & AsyncDisposable> {
  await using opening = new AsyncDisposableStack();
  await mkdir(base, { recursive: true, mode: 0o700 });
  const directory = await realpath(await mkdtemp(join(base, 'build-')));
  opening.defer(() => removeTree(directory));
  const isLent = jail.level !== 'none' && process.getuid?.() === 0;
  const uid = isLent ? opening.use(leaseUid()).uid : undefined;
  const [project, home] = [join(directory, 'project'), join(directory, 'home')];
  await Promise.all([mkdir(project), mkdir(home)]);
  if (uid !== undefined) for (const empty of [project, home]) chownTree(uid, empty);
  const own = opening.move();
  return {
    directory,
    project,
    home,
    uid,
    archive: join(directory, 'archive.tgz'),
    bundle: join(directory, 'bundle.mjs'),
    [Symbol.asyncDispose]: () => own.disposeAsync(),
  };
}
