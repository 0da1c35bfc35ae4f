/**
 * A JSON value as a tree. It may have millions of members: only open branches are drawn, 100
 * members of each at once, and its text is made when it is copied.
 */
import { useMemo, useState } from 'preact/hooks';
import { escaped, plain } from '../../data/format.ts';
import { announce } from '../notice.tsx';
import { copy } from '../text.tsx';

/** Members of a branch that are drawn at once, and that a branch has that is open at first. */
const DRAWN_MAX = 100;
/** Of a branch below the first level that is open at first. */
const OPEN_MAX = 10;
const OPEN_DEPTH = 2;
const TEXT_MAX_CHARS = 400;
const KEY_MAX_CHARS = 120;

type Branch = unknown[] | Record<string, unknown>;

export function JsonTree({ label, value }: { label: string; value: unknown }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls by keys
    <section class="json" aria-label={label} tabIndex={0} dir="ltr">
      <Node value={value} depth={0} />
    </section>
  );
}

/** Copies the whole value as JSON. */
export function CopyJson({ value, label }: { value: unknown; label: string }) {
  const run = () => {
    try {
      void copy(JSON.stringify(value, undefined, 2));
    } catch {
      announce('The value is nested too deeply to be copied.');
    }
  };
  return (
    <button type="button" class="plain" title={label} onClick={run}>
      Copy JSON
    </button>
  );
}

type NodeProps = { name?: string; value: unknown; depth: number };

function Node({ name, value, depth }: NodeProps) {
  if (!isBranch(value)) {
    return (
      <span class="json-leaf">
        <Name name={name} />
        <Leaf value={value} />
      </span>
    );
  }
  return <Members name={name} value={value} depth={depth} />;
}

type MembersProps = { name: string | undefined; value: Branch; depth: number };

function Members({ name, value, depth }: MembersProps) {
  const isList = Array.isArray(value);
  const keys = useMemo(() => (isList ? undefined : Object.keys(value)), [value, isList]);
  const count = keys?.length ?? (value as unknown[]).length;
  const [isOpen, setOpen] = useState(isOpenAtFirst(count, depth));
  const [drawn, setDrawn] = useState(DRAWN_MAX);
  const more = () => setDrawn(drawn + DRAWN_MAX);
  const [left, right] = isList ? '[]' : '{}';
  const word = isList ? 'item' : 'member';
  const shown =
    keys?.slice(0, drawn) ?? Array.from((value as unknown[]).slice(0, drawn), (_, at) => `${at}`);
  if (count === 0) {
    return (
      <span class="json-leaf">
        <Name name={name} />
        {left}
        {right}
      </span>
    );
  }
  return (
    <>
      <button
        type="button"
        class="json-branch"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        <Name name={name} />
        {left}
        {!isOpen && `…${right}`} <small>{count === 1 ? `1 ${word}` : `${count} ${word}s`}</small>
      </button>
      {isOpen && <MemberList value={value} keys={shown} count={count} depth={depth} more={more} />}
    </>
  );
}

type ListProps = {
  value: Branch;
  /** Of the members that are drawn. */
  keys: readonly string[];
  count: number;
  depth: number;
  more(): void;
};

function MemberList({ value, keys, count, depth, more }: ListProps) {
  return (
    <ul>
      {keys.map((key) => (
        <li key={key}>
          <Node
            name={Array.isArray(value) ? key : JSON.stringify(key.slice(0, KEY_MAX_CHARS))}
            value={(value as Record<string, unknown>)[key]}
            depth={depth + 1}
          />
        </li>
      ))}
      {count > keys.length && (
        <li>
          <button type="button" class="plain" onClick={more}>
            Show {Math.min(DRAWN_MAX, count - keys.length)} more of {count}
          </button>
        </li>
      )}
    </ul>
  );
}

function Name({ name }: { name: string | undefined }) {
  return name === undefined ? null : <bdi class="json-name">{plain(name)}: </bdi>;
}

function Leaf({ value }: { value: unknown }) {
  const [isWhole, setWhole] = useState(false);
  if (typeof value !== 'string') return <span class="json-value">{String(value)}</span>;
  const isCut = value.length > TEXT_MAX_CHARS && !isWhole;
  const shown = isCut ? value.slice(0, TEXT_MAX_CHARS) : value.slice(0, WHOLE_MAX_CHARS);
  return (
    <>
      <bdi class="json-text">{escaped(JSON.stringify(shown))}</bdi>
      {isCut && (
        <button type="button" class="plain" onClick={() => setWhole(true)}>
          of {value.length} characters: show more
        </button>
      )}
    </>
  );
}

/** Ours: more text in one node makes the page slow; copying has it whole. */
const WHOLE_MAX_CHARS = 100_000;

function isOpenAtFirst(count: number, depth: number): boolean {
  return depth < OPEN_DEPTH && count <= (depth === 0 ? DRAWN_MAX : OPEN_MAX);
}

function isBranch(value: unknown): value is Branch {
  return typeof value === 'object' && value !== null;
}
