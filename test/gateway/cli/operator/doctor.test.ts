/** The gateway's checks of `tabern doctor`. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { certificate } from '../../../../gateway/cli/operator/doctor.ts';
import { authority } from '../../../support/servers/certificates.ts';
import { tempDirectory } from '../../../support/temp.ts';

const test = suite('gateway/cli/operator/doctor');
const DAY_MS = 86_400_000;

test('a certificate is valid, about to expire, expired, or missing', async () => {
  await using dir = tempDirectory();
  const path = join(dir.path, 'cert.pem');
  assert.is(certificate(path, 0).level, 'fail');
  writeFileSync(path, (await (await authority()).issue()).cert); // a day is left
  const now = Date.now();
  assert.is(certificate(path, now - 30 * DAY_MS).level, 'ok');
  assert.is(certificate(path, now).level, 'warn');
  const over = certificate(path, now + 2 * DAY_MS);
  assert.is(over.level, 'fail');
  assert.match(over.fix ?? '', /renew .*cert\.pem, then `kill -HUP`/);
  writeFileSync(path, 'no certificate');
  assert.is(certificate(path, now).level, 'fail');
});

test.run();
