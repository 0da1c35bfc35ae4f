/** The console's list of sessions: filters, pages, and what other projects see of it. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { consoleService } from '../../../core/console/console.ts';
import { bareStore, callerOf } from '../../support/core/bare-store.ts';
import { faultOf } from '../../support/fault.ts';

const test = suite('core/console/sessions');

const ANY = { from: undefined, to: undefined };

test('pages contain each session once, newest first', async () => {
  await using bare = bareStore();
  const { listSessions } = consoleService(bare);
  const caller = callerOf(bare.projectId);
  const insert = bare.db.prepare(`
    INSERT INTO sessions (id, project_id, status, region, params, created_at, updated_at,
      expires_at)
    VALUES (@id, @projectId, 'COMPLETED', 'us-west-2', '{}', @at, @at, @at)`);
  const ids = Array.from({ length: 10 }, () => newId());
  for (const [at, id] of ids.entries()) insert.run({ id, projectId: bare.projectId, at });
  const first = await listSessions({ ...ANY, limit: 4 }, caller);
  const second = await listSessions({ ...ANY, limit: 9, cursor: first.nextCursor }, caller);
  const listed = [...first.sessions, ...second.sessions].map(({ id }) => id);
  assert.equal(listed, ids.toReversed());
  assert.is(second.nextCursor, undefined);
  const other = listSessions({ ...ANY, cursor: first.nextCursor }, callerOf(newId()));
  assert.is((await faultOf(other)).reason, 'INVALID_CURSOR');
});

test.run();
