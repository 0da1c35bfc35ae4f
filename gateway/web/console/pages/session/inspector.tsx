/** The chosen entry of a list, whole. */

import { isUtc } from '../../data/clock.ts';
import { bytesText, exactText, lengthText, offsetText } from '../../data/format.ts';
import type { LogRow } from '../../data/log/model.ts';
import { seek, wanted } from '../../data/playhead.ts';
import type { Session } from '../../data/types.ts';
import { State } from '../../parts/state.tsx';
import { Address, Copy, Foreign } from '../../parts/text.tsx';
import { canWatch, startOf } from './clock.ts';
import type { ChosenEntry } from './use-log.ts';

const WORDS = { running: 'Loading', done: 'Done', failed: 'Failed', waiting: 'No answer' };
const LINE_WORDS = { running: 'Line', done: 'Line', failed: 'Error', waiting: 'Warning' };

type Props = { entry: ChosenEntry | undefined; session: Session };

export function Inspector({ entry, session }: Props) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls by keys
    <section class="inspector" aria-label="Entry" tabIndex={0}>
      {entry === undefined ? (
        <p class="hint">Choose an entry of the list below: it is shown here, whole.</p>
      ) : (
        <Entry entry={entry} session={session} />
      )}
    </section>
  );
}

function Entry({ entry, session }: { entry: ChosenEntry; session: Session }) {
  const { row, texts, list } = entry;
  const isLive = canWatch(session) && wanted.value === undefined;
  const words = list === 'console' ? LINE_WORDS : WORDS;
  return (
    <>
      <h2>
        <Foreign text={row.name} max={120} />
      </h2>
      <dl class="facts">
        <dt>State</dt>
        <dd>
          <State
            name={row.state}
            word={row.code === undefined ? words[row.state] : `${row.code}`}
          />
        </dd>
        {list !== 'cdp' && (
          <>
            <dt>{list === 'net' ? 'Address' : 'Text'}</dt>
            <dd>{list === 'net' ? <Address url={row.text} /> : <Foreign text={row.text} />}</dd>
          </>
        )}
        {row.note !== undefined && (
          <>
            <dt>Reason</dt>
            <dd>
              <Foreign text={row.note} />
            </dd>
          </>
        )}
        <dt>At</dt>
        <dd>
          {offsetText(row.at - startOf(session))} s{' '}
          <span class="none">{exactText(row.at, isUtc.value)}</span>
        </dd>
        <Sizes row={row} />
        <dt>Page</dt>
        <dd>{row.page}</dd>
      </dl>
      {isLive && <ToPicture row={row} />}
      {texts.map((text, index) => (
        <Message key={index} text={text} />
      ))}
    </>
  );
}

/** A live picture stays until a person leaves it. */
function ToPicture({ row: { at, page } }: { row: LogRow }) {
  return (
    <button type="button" onClick={() => seek(at, page)}>
      Show the picture of this moment
    </button>
  );
}

function Sizes({ row: { lengthMs, bytes } }: { row: LogRow }) {
  return (
    <>
      {lengthMs !== undefined && (
        <>
          <dt>Length</dt>
          <dd>{lengthText(lengthMs)}</dd>
        </>
      )}
      {bytes !== undefined && (
        <>
          <dt>Received</dt>
          <dd>{bytesText(bytes)}</dd>
        </>
      )}
    </>
  );
}

function Message({ text }: { text: string }) {
  return (
    <div class="command">
      <pre dir="ltr">{text}</pre>
      <Copy text={text} label="Copy the message" />
    </div>
  );
}
