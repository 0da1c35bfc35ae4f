/** What went into a run and what came out of it. */
import type { ComponentChildren } from 'preact';
import { escaped } from '../../data/format.ts';
import type { RunDetail } from '../../data/types.ts';
import { Shape } from '../../parts/state.tsx';
import { Foreign } from '../../parts/text.tsx';
import { CopyJson, JsonTree } from '../../parts/values/json-tree.tsx';

/** Ours: a stack has a few lines; more text makes the page slow. */
const STACK_MAX_CHARS = 20_000;

export function Cause({ cause }: { cause: NonNullable<RunDetail['cause']> }) {
  const { code, name, message, stack } = cause;
  const title = [name, message].filter((one) => one !== undefined && one !== '').join(': ');
  return (
    <section class="cause" aria-label="Cause">
      <h2>
        <Shape name="failed" /> {code}
      </h2>
      <p>
        <Foreign text={title} max={2_000} />
      </p>
      {stack !== undefined && <pre dir="ltr">{escaped(stack.slice(0, STACK_MAX_CHARS))}</pre>}
    </section>
  );
}

type ValueProps = { title: string; value: unknown; none: string; children?: ComponentChildren };

export function Value({ title, value, none, children }: ValueProps) {
  return (
    <section class="value" aria-label={title}>
      <div class="head">
        <h2>{title}</h2>
        {value !== undefined && (
          <CopyJson value={value} label={`Copy the ${title.toLowerCase()} as JSON`} />
        )}
        {children}
      </div>
      {value === undefined ? (
        <p class="hint">{none}</p>
      ) : (
        <JsonTree label={`${title}, as a tree`} value={value} />
      )}
    </section>
  );
}
