/** Reads that changes cause: at once, then few of them; none while the page is hidden. */
import { suite } from 'uvu';
import { equal, is } from 'uvu/assert';
import { paced } from '../../../gateway/web/console/data/paced.ts';
import { until } from '../../support/poll.ts';

const test = suite('gateway/web/console-paced');

/** A page that can be hidden. */
function openPage() {
  const page = Object.assign(new EventTarget(), { hidden: false });
  return {
    page,
    show(isShown: boolean) {
      page.hidden = !isShown;
      page.dispatchEvent(new Event('visibilitychange'));
    },
  };
}

test('a hundred changes are two reads: one at once, one after a pause', async () => {
  const { page } = openPage();
  const times: number[] = [];
  const reads = paced(async () => void times.push(performance.now()), page);
  for (let n = 0; n < 100; n += 1) reads.request();
  is(times.length, 1);
  await until(() => times.length === 2);
  const [first = 0, second = 0] = times;
  is(second - first >= 990, true, `${second - first} ms`);
  reads.stop();
});

test('a change during a read is read after it', async () => {
  const { page } = openPage();
  const first = Promise.withResolvers<void>();
  let count = 0;
  const reads = paced(() => {
    count += 1;
    return count === 1 ? first.promise : Promise.resolve();
  }, page);
  reads.request();
  reads.request();
  is(count, 1);
  first.resolve();
  await until(() => count === 2);
  reads.stop();
});

test('a hidden page reads when it is shown, and a stopped one never', async () => {
  const { page, show } = openPage();
  const seen: string[] = [];
  show(false);
  const reads = paced(async () => void seen.push('a'), page);
  const ended = paced(async () => void seen.push('b'), page);
  for (const one of [reads, ended]) one.request();
  equal(seen, []);
  ended.stop();
  show(true);
  await until(() => seen.length > 0);
  equal(seen, ['a']);
  reads.stop();
});

test.run();
