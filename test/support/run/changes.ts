/** The files of the repository that differ from a revision, untracked ones included. */
import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';

/**
 * Absolute paths, removed files included. Without a revision: since the branch left its upstream,
 * or since the last commit where there is no upstream.
 */
export function changedFiles(root: string, since?: string): string[] {
  const git = (...args: string[]) =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  const base = since ?? upstreamOf(git);
  const names = [
    git('diff', '--name-only', '--no-renames', '-z', base, '--'),
    git('ls-files', '--others', '--exclude-standard', '-z'),
  ];
  return names
    .flatMap((text) => text.split('\0').filter(Boolean))
    .map((name) => resolve(root, name));
}

function upstreamOf(git: (...args: string[]) => string): string {
  try {
    return git('merge-base', 'HEAD', '@{upstream}').trim();
  } catch {
    return 'HEAD'; // a branch of its own, or no branch
  }
}
