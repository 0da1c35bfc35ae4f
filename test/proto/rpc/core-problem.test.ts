/** Sentences about a core that cannot be reached, when the caller's own certificate changes. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { coreProblem } from '../../../proto/rpc/core-problem.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import { openPairs } from '../../support/service/apart/pairs.ts';
import { tempDirectory } from '../../support/temp.ts';

const test = suite('proto/rpc/core-problem');

test('a client certificate that is being replaced is a problem, and no error', async () => {
  await using dir = tempDirectory();
  const { ca, pair } = await openPairs(join(dir.path, 'certs'));
  const own = await pair(['runner-1']);
  const coreTls = { ca, pair: { ...own, cert: { ...own.cert, source: `X in ${dir.path}:3` } } };
  const link = { core: 'core:7447', coreTls, tokenSetting: 'TABERN_RUNNER_TOKEN' };
  const refused = new Fault('CORE_UNAVAILABLE', 'x', {}, { details: 'Failed to connect before' });
  assert.match(coreProblem(refused, link) ?? '', /TABERN_CORE_CLIENT_CERT_FILE must be/);
  const cannot = 'TABERN_CORE_CLIENT_CERT_FILE cannot be read: it must be a certificate in PEM';
  writeFileSync(own.cert.path, '-----BEGIN CERT');
  assert.is(coreProblem(refused, link), cannot);
  rmSync(own.cert.path);
  assert.is(coreProblem(refused, link), cannot);
});

test('a core that answers with an error, or late, is not one at another address', () => {
  const link = { core: 'core:7447', coreTls: undefined, tokenSetting: 'TABERN_RUNNER_TOKEN' };
  const away = new Fault('CORE_UNAVAILABLE', 'The database is not available. Try again.');
  const words = 'core cannot work at present: The database is not available. Try again';
  assert.is(coreProblem(away, link), words);
  const late = new Fault('DEADLINE', 'x', {}, { details: 'Deadline exceeded after 2.0s' });
  assert.match(coreProblem(late, link) ?? '', /^core did not answer in time: its log has/);
  const silent = new Fault('CORE_UNAVAILABLE', 'x', {}, { details: 'No connection established' });
  assert.match(coreProblem(silent, link) ?? '', /^core does not answer: set TABERN_CORE/);
  assert.is(coreProblem(new Fault('QUEUE_FULL', 'x'), link), undefined);
});

test.run();
