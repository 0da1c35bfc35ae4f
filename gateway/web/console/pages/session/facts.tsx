/** The lists of a session that are short: events, files and settings. */
import { inProject, withQuery } from '../../data/api.ts';
import { bytesText, escaped, lengthText, plain } from '../../data/format.ts';
import type { Download, Session, SessionEvent } from '../../data/types.ts';
import { Failure, useLoad } from '../../parts/load.tsx';
import { Address, Foreign, Id, Time } from '../../parts/text.tsx';

const EVENTS: Record<string, string> = {
  created: 'Accepted',
  started: 'Browser ready',
  page: 'Page opened',
  download: 'File downloaded',
  delivery: 'Webhook event',
  released: 'Release requested',
  ended: 'Ended',
};

export function EventsList({ session }: { session: Session }) {
  const path = `/console/api/v1/sessions/${session.id}/events`;
  const { value, error, again } = useLoad<{ events: SessionEvent[] }>(
    path,
    ['SESSIONS'],
    session.id,
  );
  if (error !== undefined) return <Failure error={error} again={again} />;
  if (value === undefined) return <p class="hint">Reading…</p>;
  return (
    <table aria-label="Events">
      <thead>
        <tr>
          <th scope="col">At</th>
          <th scope="col">Event</th>
          <th class="wide" scope="col">
            What
          </th>
          <th scope="col">Length</th>
        </tr>
      </thead>
      <tbody>
        {value.events.map((event) => (
          <tr key={`${event.at} ${event.type} ${event.ref ?? ''}`}>
            <td>
              <Time at={event.at} />
            </td>
            <td>{EVENTS[event.type] ?? event.type}</td>
            <td class="wide">
              <EventText event={event} />
            </td>
            <td>
              {event.endedAt !== undefined &&
                lengthText(Date.parse(event.endedAt) - Date.parse(event.at))}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function EventText({ event: { type, text, size } }: { event: SessionEvent }) {
  if (text === undefined) return null;
  if (type === 'page') return <Address url={text} />;
  return (
    <>
      <Foreign text={text} />
      {size !== undefined && ` (${bytesText(size)})`}
    </>
  );
}

export function FilesList({ session }: { session: Session }) {
  const path = withQuery('/v1/downloads', { sessionId: session.id, limit: '100' });
  const { value, error, again } = useLoad<{ downloads: Download[]; total: number }>(
    path,
    ['SESSIONS'],
    session.id,
  );
  if (error !== undefined) return <Failure error={error} again={again} />;
  if (value === undefined) return <p class="hint">Reading…</p>;
  if (value.downloads.length === 0) return <p class="hint">No page has downloaded a file.</p>;
  const { downloads, total } = value;
  return (
    <>
      <p class="files-note">
        <a href={inProject(`/v1/sessions/${session.id}/downloads`)} download={`${session.id}.zip`}>
          All files as a zip
        </a>
        {total > downloads.length && ` The newest ${downloads.length} of ${total} are listed.`}
      </p>
      <Files downloads={downloads} />
    </>
  );
}

function Files({ downloads }: { downloads: Download[] }) {
  return (
    <table aria-label="Files">
      <thead>
        <tr>
          <th class="wide" scope="col">
            Name
          </th>
          <th scope="col">Type</th>
          <th scope="col">Size</th>
          <th scope="col">SHA-256</th>
          <th scope="col">Downloaded</th>
        </tr>
      </thead>
      <tbody>
        {downloads.map(({ id, filename, mimeType, size, checksum, createdAt }) => (
          <tr key={id}>
            <td class="wide">
              <a
                href={inProject(`/console/api/v1/downloads/${id}/content`)}
                download={plain(filename)}
              >
                <Foreign text={filename} />
              </a>
            </td>
            <td>
              <Foreign text={mimeType} max={60} />
            </td>
            <td>{bytesText(size)}</td>
            <td>
              <Id value={checksum} />
            </td>
            <td>
              <Time at={createdAt} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function Settings({ session }: { session: Session }) {
  const { userMetadata, contextId, region, keepAlive, proxyBytes, expiresAt, createdAt } = session;
  return (
    <dl class="facts">
      <dt>Accepted</dt>
      <dd>
        <Time at={createdAt} />
      </dd>
      <dt>Times out</dt>
      <dd>
        <Time at={expiresAt} />
      </dd>
      <dt>Without clients</dt>
      <dd>{keepAlive ? 'keeps running (keepAlive)' : 'ends'}</dd>
      <dt>Region</dt>
      <dd>{region}</dd>
      <dt>Context</dt>
      <dd>{contextId === undefined ? 'none' : <Id value={contextId} />}</dd>
      <dt>Proxy</dt>
      <dd>{bytesText(proxyBytes)}</dd>
      <dt>Metadata</dt>
      <dd>
        {userMetadata === undefined ? (
          'none'
        ) : (
          <pre dir="ltr">{escaped(JSON.stringify(userMetadata, undefined, 2))}</pre>
        )}
      </dd>
    </dl>
  );
}
