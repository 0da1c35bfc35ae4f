/**
 * The project in the bar: its name, and for an operator login a button that opens the list of all
 * projects, with a filter.
 */
import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { api, isOperator, type Me, sentenceOf } from '../data/api.ts';
import { operatorPath, pathOf } from '../data/route.ts';
import { go, route } from '../data/router.ts';
import type { OperatedProject } from '../pages/operator/types.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Foreign } from '../parts/text.tsx';

const NAME_CHARS = 60;
/** Ours: more rows are not read, they are filtered. */
const SHOWN_MAX = 100;

/** All projects, since the operator first opened one; empty for a project's login. */
export const projects = signal<readonly OperatedProject['project'][]>([]);

/** Reads the names of all projects. */
export async function readProjects(): Promise<void> {
  const answer = await api<{ projects: OperatedProject[] }>('/console/api/v1/operator/projects');
  projects.value = answer.projects.map(({ project }) => project);
}

/** The name of the page's project; undefined while it is not known. */
export function projectName({ projectName: own }: Me): string | undefined {
  if (!isOperator()) return own ?? undefined;
  const { projectId } = route.value;
  if (projectId === '') return 'Operator';
  return projects.value.find(({ id }) => id === projectId)?.name;
}

export function Project({ me }: { me: Me }) {
  const [isOpen, setOpen] = useState(false);
  const name = projectName(me) ?? 'Project';
  useEffect(() => {
    if (isOperator()) readProjects().catch(() => undefined); // the dialog says why
  }, []);
  if (!isOperator()) {
    return (
      <strong class="project" title={me.projectId ?? ''}>
        <Foreign text={name} max={NAME_CHARS} />
      </strong>
    );
  }
  return (
    <>
      <button
        type="button"
        class="project switch"
        aria-haspopup="dialog"
        onClick={() => setOpen(true)}
      >
        <Foreign text={name} max={NAME_CHARS} />
        <span aria-hidden="true">▾</span>
        <span class="hidden">: choose a project</span>
      </button>
      {isOpen && <Switcher close={() => setOpen(false)} />}
    </>
  );
}

function Switcher({ close }: { close: () => void }) {
  const [text, setText] = useState('');
  const [error, setError] = useState<string>();
  useEffect(() => {
    readProjects().catch((reason: unknown) => setError(sentenceOf(reason)));
  }, []);
  const wanted = text.trim().toLowerCase();
  const found = projects.value.filter(
    ({ id, name }) => name.toLowerCase().includes(wanted) || id === wanted,
  );
  const choose = (path: string) => {
    close();
    go(path);
  };
  return (
    <Dialog label="Choose a project" close={close}>
      <form
        class="switcher"
        onSubmit={(event) => {
          event.preventDefault();
          const [first] = found;
          if (first !== undefined) choose(pathOf(first.id));
        }}
      >
        <input
          type="search"
          aria-label="Filter projects"
          placeholder="name or id of a project"
          autocomplete="off"
          spellcheck={false}
          ref={focused}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
        {error !== undefined && (
          <p class="error" role="alert">
            {error}
          </p>
        )}
        <ul aria-label="Projects">
          {wanted === '' && (
            <li>
              <Choice path={operatorPath()} choose={choose}>
                Operator
              </Choice>
            </li>
          )}
          {found.slice(0, SHOWN_MAX).map(({ id, name }) => (
            <li key={id}>
              <Choice path={pathOf(id)} choose={choose} isCurrent={id === route.value.projectId}>
                <Foreign text={name} max={NAME_CHARS} />
              </Choice>
            </li>
          ))}
        </ul>
        <Rest count={found.length} />
      </form>
    </Dialog>
  );
}

/** What the list does not show. */
function Rest({ count }: { count: number }) {
  if (count === 0) return <p class="hint">No project has this name.</p>;
  if (count <= SHOWN_MAX) return null;
  return <p class="hint">{count - SHOWN_MAX} more: type a part of the name.</p>;
}

type ChoiceProps = {
  path: string;
  choose(path: string): void;
  isCurrent?: boolean;
  children: preact.ComponentChildren;
};

function Choice({ path, choose, isCurrent = false, children }: ChoiceProps) {
  return (
    <a
      href={path}
      aria-current={isCurrent ? 'page' : undefined}
      onClick={(event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        choose(path);
      }}
    >
      {children}
    </a>
  );
}

function focused(element: HTMLInputElement | null): void {
  element?.focus();
}
