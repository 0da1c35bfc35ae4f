/**
 * A disk that can lose its power: ext4 on a file, mounted by a loop device. The file system's own
 * shutdown call drops all data that is not on the disk, its journal included. Needs root and loop
 * devices.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { tempDirectory } from '../support/temp.ts';

const SIZE = '256M';
/** FS_IOC_SHUTDOWN with NOLOGFLUSH: node has no ioctl, perl is part of every Debian. */
const SHUTDOWN = `
  open(my $root, '<', $ARGV[0]) or die $!;
  my $how = pack('I', 2);
  ioctl($root, 0x8004587d, $how) or die "ioctl: $!";`;

export type Disk = AsyncDisposable & {
  path: string;
  /** Writes all pending data to the disk. */
  sync(): void;
  losePower(): void;
  /**
   * Mounts the disk again, with the data that it had. No process may have one of its files open.
   */
  mountAgain(): void;
};

/** Whether this process can create such a disk. */
export function hasDisks(): boolean {
  if (process.getuid?.() !== 0) return false;
  try {
    run('losetup', '--find');
    run('perl', '-e', '1');
    return true;
  } catch {
    return false; // a container without loop devices
  }
}

export function openDisk(): Disk {
  const dir = tempDirectory();
  const image = join(dir.path, 'image');
  const left = join(dir.path, 'left');
  const path = join(dir.path, 'disk');
  mkdirSync(path);
  run('truncate', '-s', SIZE, image);
  run('mkfs.ext4', '-q', '-F', image);
  const mount = (from: string) => run('mount', '-o', 'loop', from, path);
  const unmount = () => run('umount', path);
  mount(image);
  return {
    path,
    sync: () => run('sync', '--file-system', path),
    losePower: () => run('perl', '-e', SHUTDOWN, path),
    mountAgain() {
      unmount();
      // A copy: a process in another mount namespace may keep the first one mounted.
      run('cp', '--sparse=always', image, left);
      mount(left);
    },
    async [Symbol.asyncDispose]() {
      unmount();
      await dir[Symbol.asyncDispose]();
    },
  };
}

function run(command: string, ...args: string[]): void {
  execFileSync(command, args, { stdio: 'pipe' });
}
