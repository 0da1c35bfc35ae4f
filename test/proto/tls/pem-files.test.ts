import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ConfigError } from '../../../proto/common/env.ts';
import { readAuthorities } from '../../../proto/tls/pem-files.ts';
import { openPairs } from '../../support/service/apart/pairs.ts';
import { tempDirectory } from '../../support/temp.ts';

const test = suite('proto/tls/pem-files');

test('each certificate of a file of authorities is verified', async () => {
  await using temp = tempDirectory();
  const [one, other] = [
    readFileSync((await openPairs(join(temp.path, 'one'))).ca.path, 'latin1'),
    readFileSync((await openPairs(join(temp.path, 'other'))).ca.path, 'latin1'),
  ];
  const path = join(temp.path, 'bundle.crt');
  const read = (text: string | Buffer) => {
    writeFileSync(path, text);
    return readAuthorities({ path, source: 'TABERN_CORE_CA_FILE' });
  };
  const damaged = other.replace(/\n[\w+/]{64}\n/, '\n'); // without a line
  const whole = `# the first\n${one}\n# the second\r\n${other.replaceAll('\n', '\r\n')}`;
  assert.is(String(read(whole)), whole);
  for (const [text, sentence] of [
    ['', /^TABERN_CORE_CA_FILE: .*bundle\.crt has no certificate in PEM$/],
    ['no certificate', /has no certificate in PEM$/],
    [damaged, /has no certificate in PEM$/],
    [`${damaged}\n${one}`, /has no certificate in PEM \(certificate 1\)$/],
    [`${one}\n${damaged}`, /has no certificate in PEM \(certificate 2\)$/],
    [`${one}\n${other.slice(0, 300)}`, /has no certificate in PEM \(certificate 2\)$/],
    [Buffer.from(one.replace(/-----.*-----|\n/g, ''), 'base64'), /has no certificate in PEM$/],
  ] as const) {
    try {
      read(text);
      assert.unreachable(String(sentence));
    } catch (error) {
      assert.instance(error, ConfigError);
      assert.match((error as Error).message, sentence);
    }
  }
});

test.run();
