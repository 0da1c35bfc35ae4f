/** Our own downtime is not held against an endpoint: proto/spec/webhooks.md 7. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { bootDeliveries, HOUR, only } from '../../support/core/deliveries.ts';

const heartbeat = suite('core/webhooks/heartbeat');

heartbeat(
  'a long downtime of core does not count against a failing webhook; a restart does',
  async () => {
    await using app = bootDeliveries();
    await app.addWebhook();
    await app.store.beat({ at: app.clock.now(), gapMinMs: 600_000 });
    app.emit();
    await app.report([[only(await app.claim()), {}]]);
    const since = () => Number(app.rows('SELECT first_failure_at AS at FROM webhooks')[0]?.['at']);
    const startedAt = since();
    app.clock.advance(600_000);
    assert.equal(await app.store.beat({ at: app.clock.now(), gapMinMs: 600_000 }), { gapMs: 0 });
    assert.is(since(), startedAt);
    app.clock.advance(48 * HOUR);
    const beat = await app.store.beat({ at: app.clock.now(), gapMinMs: 600_000 });
    assert.equal(beat, { gapMs: 48 * HOUR });
    assert.is(since(), startedAt + 48 * HOUR);
  },
);

heartbeat.run();
