import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { coreFailure, EXIT, gatewayFailure } from '../../../gateway/process/exit-codes.ts';
import { ANOTHER_RUNS, ConfigError } from '../../../proto/common/env.ts';

const test = suite('gateway/process/exit-codes');

test('a held data directory, a wrong setting and a failed disk have codes of their own', () => {
  assert.is(coreFailure(new ConfigError(`${ANOTHER_RUNS}: /srv`), '/srv').code, EXIT.another);
  assert.is(coreFailure(new ConfigError('TABERN_LEASE_MS must be'), '/srv').code, EXIT.config);
  assert.is(coreFailure(new Error('SQLITE_IOERR'), '/srv').code, EXIT.storage);
  assert.match(coreFailure(new Error('EACCES'), '/srv').message, '/srv: EACCES');
});

test('a taken port is told from an address that is not ours', () => {
  const failed = (code: string) => gatewayFailure(Object.assign(new Error(code), { code }), 'a:1');
  assert.is(failed('EADDRINUSE').code, EXIT.port);
  assert.match(failed('EADDRINUSE').message, /a:1 is in use/);
  assert.is(failed('EADDRNOTAVAIL').code, EXIT.config);
});

test.run();
