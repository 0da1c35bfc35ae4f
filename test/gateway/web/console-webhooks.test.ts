/** What a person reads about webhooks: states of days, counts, reasons. */
import { suite } from 'uvu';
import { equal, is } from 'uvu/assert';
import {
  answerText,
  backlogText,
  daySentence,
  dayState,
  daysSentence,
  p95Text,
  reasonText,
} from '../../../gateway/web/console/data/webhooks.ts';

const test = suite('gateway/web/console-webhooks');

const dayOf = (date: string, delivered = 0, failed = 0, lost = 0) => {
  return { at: `2026-11-${date}T00:00:00Z`, delivered, failed, lost };
};
const HEALTH = { webhookId: 'a', days: [], answers: 3, backlog: 4, hasLargerBacklog: false };

test('a day is as good as the worst that happened on it', () => {
  const words = [dayOf('01'), dayOf('01', 5), dayOf('01', 5, 1), dayOf('01', 5, 1, 1)];
  equal(
    words.map((day) => dayState(day).word),
    ['nothing sent', 'all delivered', 'attempts failed', 'deliveries lost'],
  );
  is(
    daySentence(dayOf('12', 40, 2)),
    '12 Nov: attempts failed. 40 delivered, 2 attempts failed, 0 lost',
  );
});

test('all days are one sentence that names the bad ones', () => {
  is(daysSentence([dayOf('01', 3), dayOf('02')]), '2 days: 3 delivered, 0 attempts failed, 0 lost');
  is(
    daysSentence([dayOf('01', 3, 1), dayOf('02', 1), dayOf('03', 0, 0, 2)]),
    '3 days: 4 delivered, 1 attempts failed, 2 lost; failures on 1 Nov, 3 Nov',
  );
});

test('figures without a value say so', () => {
  is(p95Text({ ...HEALTH, p95Ms: 75 }), '75 ms');
  is(p95Text(HEALTH), 'more than 15 s');
  is(p95Text({ ...HEALTH, answers: 0 }), '–');
  is(backlogText(HEALTH), '4');
  is(backlogText({ ...HEALTH, hasLargerBacklog: true }), 'more than 4');
});

test('an answer is its status, or why there is none; an unknown reason is shown as it is', () => {
  is(answerText('http', 502), '502');
  is(answerText('dns', undefined), 'name not resolved');
  is(answerText(undefined, undefined), 'sending');
  is(reasonText('endpoint_disabled'), 'the webhook was disabled');
  is(reasonText('other'), 'other');
});

test.run();
