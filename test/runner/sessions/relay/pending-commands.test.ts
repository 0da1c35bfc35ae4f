/** The commands of a client that Chrome has not answered. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  PENDING_MAX,
  PendingCommands,
} from '../../../../runner/sessions/relay/pending-commands.ts';

const commands = suite('runner/sessions/relay/pending-commands');

/** Ours: it takes 0.4 us, and 60 us when each command drops one. */
const EACH_MAX_US = 5;

function bench() {
  const ended = new Set<string>();
  const kept = new PendingCommands<string>((session) => !ended.has(session));
  let last = -1_000_000_000;
  const add = (session: string, count = 1) =>
    Array.from({ length: count }, () => {
      last -= 1;
      return kept.add(last, { id: last, session });
    }).flat();
  return { ended, kept, add };
}

commands('with too many commands the oldest are dropped, each once', () => {
  const { kept, add } = bench();
  assert.equal(add('a', PENDING_MAX), []);
  const given = [...add('a'), ...add('a', PENDING_MAX)];
  const ids = given.map(({ id }) => id);
  assert.is(ids[0], -1_000_000_001);
  assert.equal(
    ids,
    ids.map((_, at) => -1_000_000_001 - at),
  );
  assert.ok(ids.length >= PENDING_MAX, `${ids.length} given up`);
  const text = '{"id":-1000000001,"result":{}}';
  assert.is(kept.restoreLate(-1_000_000_001, Buffer.from(text)), undefined);
});

commands('commands of sessions that have ended make room before any other', () => {
  const { ended, kept, add } = bench();
  add('lasting');
  for (let round = 0; round < 10; round += 1) {
    assert.equal(add(`round ${round}`, PENDING_MAX / 2), []);
    ended.add(`round ${round}`);
  }
  const late = kept.restoreLate(-1_000_000_001, Buffer.from('{"id":-1000000001,"result":{}}'));
  assert.is(String(late), '{"id":-1000000001,"result":{}}');
});

commands('a command costs the same above the limit', () => {
  const { add } = bench();
  add('a', PENDING_MAX);
  const count = 2 * PENDING_MAX;
  const before = process.threadCpuUsage();
  add('a', count);
  const { user, system } = process.threadCpuUsage(before);
  const each = (user + system) / count;
  if (process.env['COST']) console.log(each);
  assert.ok(each < EACH_MAX_US, `${each} us a command`);
});

commands.run();
