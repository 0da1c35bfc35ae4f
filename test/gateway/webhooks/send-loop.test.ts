/** The sender's loop, between a core of a few lines and a real receiver. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Claimed } from '../../../gateway/webhooks/messages.ts';
import { type Link, Sender } from '../../../gateway/webhooks/send-loop.ts';
import type { AttemptReport } from '../../../proto/gen/tabern/v1/deliveries.pb.ts';
import { bootSend, claimOf } from '../../support/core/send.ts';
import { until } from '../../support/poll.ts';

const sender = suite('gateway/webhooks/send-loop');
const NOTHING: Claimed = { claims: [], goneWebhookIds: [] };
/** Of one webhook: its connections. */
const CAP = 8;

/** A core with `backlog` deliveries. `tell` responds to the waiting claim. */
function openLink(backlog: number, endpoint: string) {
  const reports: AttemptReport[] = [];
  let given = 0;
  let asked: number | undefined;
  let tell: (claimed: Claimed) => void = () => {};
  const take = (max: number): Claimed => {
    const count = Math.min(max, backlog - given);
    const claims = Array.from({ length: count }, (_, n) => {
      const deliveryId = given + n;
      const webhookId = `webhook ${Math.floor(deliveryId / CAP)}`;
      return { ...claimOf(`${endpoint}/${deliveryId}`), deliveryId, webhookId };
    });
    given += count;
    return { ...NOTHING, claims };
  };
  const link: Link = {
    async claim(max, signal) {
      const claimed = take(max);
      if (claimed.claims.length > 0) return claimed;
      const { promise, resolve, reject } = Promise.withResolvers<Claimed>();
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      if (signal.aborted) reject(signal.reason);
      asked = max;
      tell = resolve;
      return promise;
    },
    async report(ended, max) {
      reports.push(...ended);
      return take(max);
    },
    dropped: () => {},
  };
  return {
    link,
    reports,
    given: () => given,
    /** Free slots of the waiting claim. */
    asked: () => asked,
    tell: (claimed: Claimed) => tell(claimed),
  };
}

const webhookOf = (path: string): number => Math.floor(Number(path.slice(1)) / CAP);

sender('delete-stops-at-once: a sender without free slots receives a deletion', async () => {
  await using app = await bootSend();
  app.receiver.otherwise(() => () => {});
  const core = openLink(1_000, app.receiver.url);
  const loop = new Sender(core.link, app.wire);
  await using _ = { [Symbol.asyncDispose]: () => loop.end(0) };
  await until(() => core.asked() === 0);
  assert.is(core.given(), 256, 'all slots are in use');
  // on a busy machine some claims are released for want of a connection: a webhook with all slots
  const held = (number: number): number =>
    app.receiver.requests.filter(({ path }) => webhookOf(path) === number).length;
  const gone = await until(() => {
    const numbers = app.receiver.requests.map(({ path }) => webhookOf(path));
    return numbers.find((number) => number > 0 && held(number) === CAP);
  });
  const before = core.given();
  core.tell({ ...NOTHING, goneWebhookIds: [`webhook ${gone}`] });
  const isCut = ({ outcome }: AttemptReport): boolean => outcome === 'RESET';
  await until(() => core.reports.filter(isCut).length >= CAP);
  for (const { deliveryId, error } of core.reports.filter(isCut)) {
    assert.is(Math.floor(deliveryId / CAP), gone);
    assert.is(error, 'the webhook was deleted before an answer');
  }
  await until(() => core.given() >= before + CAP); // the report fills the slots again
});

sender('claims of a report while the sender closes are released unsent', async () => {
  await using app = await bootSend();
  const core = openLink(1, app.receiver.url);
  const closing = Promise.withResolvers<void>();
  const late = { ...claimOf(app.receiver.url), deliveryId: 99 };
  const link: Link = {
    ...core.link,
    async report(ended, max) {
      const isFirst = core.reports.length === 0;
      if (isFirst) await closing.promise;
      await core.link.report(ended, max);
      return isFirst ? { ...NOTHING, claims: [late] } : NOTHING;
    },
  };
  const loop = new Sender(link, app.wire);
  await app.receiver.received(() => true);
  const ended = loop.end(60_000);
  closing.resolve();
  await ended;
  assert.equal(
    core.reports.map(({ deliveryId, outcome }) => [deliveryId, outcome]),
    [
      [0, 'OK'],
      [99, 'UNSENT'],
    ],
  );
  assert.is(app.receiver.requests.length, 1);
});

sender.run();
