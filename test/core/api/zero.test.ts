/** Texts with U+0000, which PostgreSQL does not store: both engines give the same answers. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { CreateSessionRequest } from '../../../proto/gen/tabern/v1/sessions.pb.ts';
import type { Fault } from '../../../proto/rpc/errors.ts';
import { urlOf } from '../../support/engine.ts';
import { hasPostgres } from '../../support/postgres.ts';
import { boot } from '../boot.ts';

const test = suite('core/api/zero');
const TEXT = 'a\0b';

/** Of the calls, in order: a value, or the reason and message of the refusal. */
async function answersOf(env: Record<string, string>): Promise<Record<string, unknown>> {
  await using app = await boot(env);
  const { contexts, labels, sessions, console: pages, invocations, runners } = app.clients;
  const { asProject, asRunner } = app;
  const answers: Record<string, unknown> = {};
  const note = async (name: string, call: () => Promise<unknown>): Promise<void> => {
    answers[name] = await call().catch(({ reason, message }: Fault) => `${reason} ${message}`);
  };
  await note('a context', () => contexts.createContext({ name: TEXT }, asProject));
  await note('a label', () => labels.createLabel({ name: TEXT }, asProject));
  for (const userMetadata of [{ k: TEXT }, { [TEXT]: 'v' }]) {
    const request = CreateSessionRequest.fromPartial({ userMetadata });
    await note(JSON.stringify(userMetadata), () => sessions.createSession(request, asProject));
  }
  const query = (q: string) => () => sessions.listSessions({ q, label: [] }, asProject);
  await note('a query', query(`user_metadata['k']:'${TEXT}'`));
  await note('a search', () => pages.search({ q: TEXT }, asProject));
  const functionId = await app.publish({ name: 'f' });
  const params = { [TEXT]: TEXT, escaped: 'a\\u0000b' };
  await note('params', async () => (await app.invoke(functionId, params)).params);
  const [work] = await app.lease('INVOCATION');
  const outcome = { $case: 'resultsJson', value: JSON.stringify(params) } as const;
  const end = { leaseId: work?.leaseId ?? '', outcome, sessionStartMs: 0, steps: [] };
  await note('results', () => runners.completeInvocation(end, asRunner));
  const id = work?.item?.$case === 'invocation' ? work.item.value.invocationId : '';
  const read = async () => (await invocations.getInvocation({ id }, asProject)).invocation;
  await note('the results of it', async () => (await read())?.results);
  return answers;
}

if (hasPostgres()) {
  test('U+0000 is refused in texts, and kept in JSON, on both engines', async () => {
    const refused = (field: string) => `INVALID_FIELD \`${field}\` must not contain U+0000.`;
    const params = { [TEXT]: TEXT, escaped: 'a\\u0000b' };
    const expected = {
      'a context': refused('name'),
      'a label': refused('name'),
      '{"k":"a\\u0000b"}': refused('userMetadata'),
      '{"a\\u0000b":"v"}': refused('userMetadata'),
      'a query': refused('q'),
      'a search': refused('q'),
      params,
      results: { accepted: true },
      'the results of it': params,
    };
    assert.equal(await answersOf({}), expected);
    assert.equal(await answersOf({ TABERN_DATABASE_URL: await urlOf('zero') }), expected);
  });
}

test.run();
