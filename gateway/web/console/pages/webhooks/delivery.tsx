/** One delivery: its attempts, each with the request as it was sent and the response. */
import { useState } from 'preact/hooks';
import { send, sentenceOf } from '../../data/api.ts';
import { bytesText, escaped, lengthText } from '../../data/format.ts';
import { pathOf } from '../../data/route.ts';
import { route, setQuery } from '../../data/router.ts';
import {
  answerText,
  type Delivery,
  reasonText,
  type SentAttempt,
  type WholeDelivery,
} from '../../data/webhooks.ts';
import { useKeys } from '../../parts/keys.tsx';
import { Failure, useLoad } from '../../parts/load.tsx';
import { announce } from '../../parts/notice.tsx';
import { State } from '../../parts/state.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Copy, Foreign, Id, Time } from '../../parts/text.tsx';
import { deliveryHref } from './deliveries.tsx';
import { attemptState, deliveryState, isOpen } from './states.ts';

type Props = { webhookId: string; eventId: string };

export function DeliveryPage({ webhookId, eventId }: Props) {
  const own = `webhooks/${encodeURIComponent(webhookId)}/deliveries/${encodeURIComponent(eventId)}`;
  const path = `/console/api/v1/${own}`;
  const { value, error, again } = useLoad<WholeDelivery>(path, ['DELIVERIES'], eventId);
  const { projectId, query } = route.value;
  if (value === undefined) {
    if (error !== undefined) return <Failure error={error} again={again} />;
    return <p class="hint">Reading…</p>;
  }
  const { delivery, attempts, body } = value;
  const number = Number(query.get('n'));
  const chosen = attempts.find(({ attempt }) => attempt.number === number) ?? attempts[0];
  const hrefOf = (n: number) => `${deliveryHref(projectId, webhookId, eventId)}&n=${n}`;
  return (
    <div class="delivery">
      <Header delivery={delivery} again={again} path={`/v1/${own}`} />
      <Attempts attempts={attempts} chosen={chosen} hrefOf={hrefOf} />
      <div class="two">
        <Request attempt={chosen} body={body} />
        <Response attempt={chosen} />
      </div>
    </div>
  );
}

type HeaderProps = { delivery: Delivery; path: string; again: () => void };

function Header({ delivery, path, again }: HeaderProps) {
  const { projectId } = route.value;
  const { id, webhookId, endpoint, eventType, status, reason, createdAt, nextAttemptAt } = delivery;
  const replay = useReplay(path, again);
  const isFree = !isOpen(status) && !replay.isBusy;
  useKeys(isFree ? [{ keys: 'r', does: 'send the delivery again', run: replay.run }] : []);
  return (
    <>
      <header class="session-head">
        <h1>{eventType}</h1>
        <State {...deliveryState(status)} />
        <Id value={id} />
        <span class="fact">
          happened <Time at={createdAt} />
        </span>
        {nextAttemptAt !== undefined && (
          <span class="fact">
            next try <Time at={nextAttemptAt} />
          </span>
        )}
        <button type="button" class="main" disabled={!isFree} onClick={replay.run}>
          Send again
        </button>
      </header>
      <p class="hint">
        to{' '}
        <a href={pathOf(projectId, 'webhooks', webhookId)}>
          <Foreign text={endpoint} max={100} />
        </a>
        <Subject delivery={delivery} />
        {reason !== undefined && `; ${reasonText(reason)}`}
      </p>
      {replay.error !== undefined && <Failure error={replay.error} again={replay.run} />}
    </>
  );
}

/** The pages of events' resources. */
const SUBJECTS = [
  { types: /^functions\.invocations\./, name: 'runs', text: 'its run' },
  { types: /^sessions\.(?!download\.|handoff\.)/, name: 'sessions', text: 'its session' },
] as const;

/** What the event is about. */
function Subject({ delivery: { eventType, resourceId } }: { delivery: Delivery }) {
  const { projectId } = route.value;
  const page = SUBJECTS.find(({ types }) => types.test(eventType));
  if (page === undefined) return null;
  return (
    <>
      , about <a href={pathOf(projectId, page.name, resourceId)}>{page.text}</a>
    </>
  );
}

function useReplay(path: string, again: () => void) {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<string>();
  const replay = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await send('POST', `${path}/replay`);
      announce('The delivery is sent again.');
      setQuery({ n: undefined }); // the newest attempt
      again();
    } catch (failure) {
      setError(sentenceOf(failure));
    } finally {
      setBusy(false);
    }
  };
  return { isBusy, error, run: () => void replay() };
}

type AttemptsProps = {
  attempts: readonly SentAttempt[];
  chosen: SentAttempt | undefined;
  hrefOf: (n: number) => string;
};

function Attempts({ attempts, chosen, hrefOf }: AttemptsProps) {
  if (attempts.length === 0) return <p class="hint">No attempt yet.</p>;
  const oldest = attempts.at(-1)?.attempt.number ?? 1;
  return (
    <section aria-label="Attempts" class="attempts">
      <Table
        label="Attempts"
        rows={attempts}
        columns={COLUMNS}
        keyOf={({ attempt }) => String(attempt.number)}
        hrefOf={({ attempt }) => hrefOf(attempt.number)}
        shown={chosen && String(chosen.attempt.number)}
      />
      {oldest > 1 && <p class="hint">The {attempts.length} newest attempts are shown.</p>}
    </section>
  );
}

const TRIGGERS: Record<string, string> = {
  event: 'event',
  retry: 'retry',
  manual: 'sent by a person',
};

const COLUMNS: Column<SentAttempt>[] = [
  {
    name: 'Attempt',
    cell: ({ attempt }) => (
      <State name={attemptState(attempt.outcome)} word={`#${attempt.number}`} />
    ),
  },
  { name: 'Answer', cell: ({ attempt }) => answerText(attempt.outcome, attempt.statusCode) },
  {
    name: 'Latency',
    cell: ({ attempt: { latencyMs } }) => (latencyMs === undefined ? '–' : lengthText(latencyMs)),
  },
  { name: 'Started', cell: ({ attempt }) => <Time at={attempt.startedAt} /> },
  { name: 'Reason', cell: ({ attempt: { trigger } }) => TRIGGERS[trigger] ?? trigger },
  {
    name: 'Error',
    kind: 'wide',
    cell: ({ attempt: { error } }) => error !== undefined && <Foreign text={error} max={160} />,
  },
];

/** The body is the same bytes in each attempt. */
function Request({ attempt, body }: { attempt: SentAttempt | undefined; body: string }) {
  const bytes = new TextEncoder().encode(body).length;
  return (
    <section aria-label="Request">
      <h2>Request{attempt && ` of attempt #${attempt.attempt.number}`}</h2>
      {attempt !== undefined && <Headers attempt={attempt} />}
      <div class="part-head">
        <h2>Body</h2>
        <span class="none">{bytesText(bytes)}, the same in each attempt</span>
        <Copy text={body} label="Copy the body" />
      </div>
      <pre class="raw" id="body">
        {escaped(body)}
      </pre>
    </section>
  );
}

function Headers({ attempt: { attempt, headers } }: { attempt: SentAttempt }) {
  const isSigned = headers.some(({ name }) => name === 'webhook-signature');
  const text = headers.map(({ name, value }) => `${name}: ${value}`).join('\n');
  return (
    <>
      <p class="line">
        POST <Foreign text={attempt.endpoint} max={300} />
        <Copy text={text} label="Copy the headers" />
      </p>
      <dl class="headers">
        {headers.map(({ name, value }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {!isSigned && (
        <p class="none">
          The signature is no longer known: the secrets that made it were removed, or an earlier
          release sent it.
        </p>
      )}
    </>
  );
}

function Response({ attempt }: { attempt: SentAttempt | undefined }) {
  if (attempt === undefined) return null;
  const { outcome, statusCode, latencyMs, error, response = '' } = attempt.attempt;
  return (
    <section aria-label="Response">
      <h2>Response</h2>
      <p class="line">
        <State name={attemptState(outcome)} word={answerText(outcome, statusCode)} />
        {latencyMs !== undefined && <span class="none">in {lengthText(latencyMs)}</span>}
      </p>
      {error !== undefined && error !== `answered ${statusCode}` && (
        <p>
          <Foreign text={error} />
        </p>
      )}
      <div class="part-head">
        <h2>Body</h2>
        <span class="none">
          {attempt.isResponseCut ? 'the first 4 KiB' : 'headers are not stored'}
        </span>
        {response !== '' && <Copy text={response} label="Copy the response" />}
      </div>
      {response === '' ? (
        <p class="none">{outcome === undefined ? 'No answer yet.' : 'Empty.'}</p>
      ) : (
        <pre class="raw">{escaped(response)}</pre>
      )}
    </section>
  );
}
