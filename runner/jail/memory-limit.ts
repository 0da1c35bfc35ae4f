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
      const jailed = jail.launch(group === undefined ? spec : { ...spec, group: group.procs });
      group?.started();
      const maxBytes = spec.limits.memoryBytes ?? Number.POSITIVE_INFINITY;
      const watch = watchJail(jailed, maxBytes);
      let isOver = false;
      const look = (): boolean => {
        isOver ||= watch.isOver() || group?.isOverMemory() === true;
        return isOver;
      };
      const exited = jailed.exited.then(async (exit) => {
        look(); // read before the cgroup is removed
        watch.end();
        await group?.end();
        return exit;
      });
      const exitReason = (): string | undefined =>
        look() ? `it used more than ${maxBytes / 2 ** 20} MiB of memory` : undefined;
      return { ...jailed, exited, exitReason };
    },
  };
}

function watchJail({ child, kill }: Jailed, maxBytes: number) {
  let isOver = false;
  if (child.pid === undefined || maxBytes === Number.POSITIVE_INFINITY) {
    return { isOver: () => false, end: () => undefined };
  }
  const onOver = (): void => {
    isOver = true;
    kill();
  };
  const watch = watchMemory({ pid: child.pid, maxBytes, onOver });
  return { isOver: () => isOver, end: () => watch[Symbol.dispose]() };
}
