/**
 * Enforces the limits of all processes of a jail together: a jail that exceeds one is ended. By a
 * cgroup where one is available, and by a watch in any case: the owner of the cgroup may remove its
 * controllers at any time.
 */
import type { Groups } from './cgroups/cgroups.ts';
import { watchMemory } from './cgroups/memory-watch.ts';
import type { Jail, Jailed } from './jail.ts';

export function withMemoryLimit(jail: Jail, groups?: Groups): Jail {
  return {
    ...jail,
    launch(spec) {
      const group = groups?.open(spec.limits);
      let jailed: Jailed;
      try {
        jailed = jail.launch({ ...spec, group: group?.procs });
      } catch (error) {
        void group?.end();
        throw error;
      } finally {
        group?.started();
      }
      const { memoryBytes: maxBytes = Number.POSITIVE_INFINITY } = spec.limits;
      let isOver = false;
      const onOver = (): void => {
        isOver = true;
        jailed.kill();
      };
      const { pid } = jailed.child;
      const isWatched = pid !== undefined && maxBytes !== Number.POSITIVE_INFINITY;
      const watch = isWatched ? watchMemory({ pid, maxBytes, onOver }) : undefined;
      const look = (): boolean => {
        isOver ||= group?.isOverMemory() === true;
        return isOver;
      };
      const exited = jailed.exited.then(async (exit) => {
        look(); // read before the cgroup is removed
        watch?.[Symbol.dispose]();
        await group?.end();
        return exit;
      });
      const exitReason = (): string | undefined =>
        look() ? `it used more than ${maxBytes / 2 ** 20} MiB of memory` : undefined;
      return { ...jailed, exited, exitReason, memoryBytes: () => watch?.bytes };
    },
  };
}
