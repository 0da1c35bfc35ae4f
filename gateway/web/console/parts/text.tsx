/** Times, lengths, ids and texts of visited pages. All of them are text nodes. */
import { useState } from 'preact/hooks';
import { isUtc, now } from '../data/clock.ts';
import { exactText, lengthText, plain, timeText, webAddress } from '../data/format.ts';
import { announce } from './notice.tsx';

/** A time of day; the title has the milliseconds. */
export function Time({ at }: { at: string | number | undefined }) {
  if (at === undefined) return <span class="none">–</span>;
  const ms = typeof at === 'number' ? at : Date.parse(at);
  return (
    <time dateTime={new Date(ms).toISOString()} title={exactText(ms, isUtc.value)}>
      {timeText(ms, isUtc.value, now.value)}
    </time>
  );
}

/** The length between two times; it grows while there is no end. */
export function Length({ from, to }: { from: string | undefined; to: string | undefined }) {
  if (from === undefined) return <span class="none">–</span>;
  const start = Date.parse(from);
  if (to !== undefined) return <span>{lengthText(Date.parse(to) - start)}</span>;
  return <span>{lengthText(now.value - start, true)}</span>;
}

/** The first and last characters of an id, and a button that copies all of it. */
export function Id({ value }: { value: string }) {
  return (
    <span class="id" title={value}>
      <code>{value.length > 16 ? `${value.slice(0, 8)}…${value.slice(-4)}` : value}</code>
      <Copy text={value} label="Copy id" />
    </span>
  );
}

/** A button that copies a text. */
export function Copy({ text, label }: { text: string; label: string }) {
  const [isCopied, setCopied] = useState(false);
  const copied = async () => {
    await copy(text);
    setCopied(true);
  };
  return (
    <button
      type="button"
      class="copy"
      aria-label={label}
      title={label}
      onClick={copied}
      onBlur={() => setCopied(false)}
    >
      <svg viewBox="0 0 16 16" width="12" height="12" aria-hidden="true">
        <path d={isCopied ? COPIED : COPY} fill="currentColor" />
      </svg>
    </button>
  );
}

const COPY = 'M5 1h9v10h-3v4H2V5h3V1zm1.5 1.5V5H11v4.5h1.5v-7h-6zm-3 4v7h6v-7h-6z';
const COPIED = 'M6.5 12.5 2 8l1.2-1.2 3.3 3.3 6.3-6.3L14 5z';

/** Copies a text and says so. A page without https may not use the clipboard. */
export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    announce('Copied.');
  } catch {
    announce('The browser allows copying only on https or on this machine.');
  }
}

/** A text of a visited page, without characters that hide or reorder others. */
export function Foreign({ text, max }: { text: string; max?: number }) {
  return (
    <bdi class="foreign" title={plain(text, 2_000)}>
      {plain(text, max)}
    </bdi>
  );
}

/** The address of a visited page, and a link that opens it outside of the console. */
export function Address({ url }: { url: string }) {
  const href = webAddress(url);
  return (
    <span class="address">
      <Foreign text={url} />
      {href !== undefined && (
        <a class="outside" href={href} target="_blank" rel="noreferrer noopener">
          open outside
        </a>
      )}
    </span>
  );
}

/** A command, ready to copy. */
export function Command({ text, label = 'Copy the command' }: { text: string; label?: string }) {
  return (
    <div class="command">
      <pre>{text}</pre>
      <Copy text={text} label={label} />
    </div>
  );
}
