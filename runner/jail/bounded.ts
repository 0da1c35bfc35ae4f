/** Holds a jail to limits that are of all its processes together: it ends when it is past one. */
import type { Jail } from './ladder.ts';
import { watchMemory } from './memory.ts';

export function bounded(jail: Jail): Jail {
  return {
    ...jail,
    launch(spec) {
      const jailed = jail.launch(spec);
      const { memoryBytes: maxBytes } = spec.limits;
      const { pid } = jailed.child;
      if (maxBytes === undefined || pid === undefined) return jailed;
      let why: string | undefined;
      const onOver = (): void => {
        why = `it used more than ${maxBytes / 2 ** 20} MiB of memory`;
        jailed.kill();
      };
      const watch = watchMemory({ pid, maxBytes, onOver });
      void jailed.exited.then(() => watch[Symbol.dispose]());
      return { ...jailed, why: () => why };
    },
  };
}
