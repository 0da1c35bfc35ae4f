/** Variables that look like settings: a wrong one is named with the nearest, a known one never. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { nearest, unknownVariables } from '../../../../proto/common/settings/unknown.ts';

const test = suite('proto/common/settings/unknown');

const UNKNOWN: [variable: string, nearest: string][] = [
  ['TABERN_PROT', 'TABERN_PORT'],
  ['TABERN_CHROMESPARES', 'TABERN_CHROME_SPARES'],
  ['TABERN_LEASE', 'TABERN_LEASE_MS'],
  ['TABERN_API_KYE', 'TABERN_API_KEY'],
  ['TABERN_PROT_FILE', 'TABERN_PORT_FILE'],
];
for (const [variable, wanted] of UNKNOWN) {
  test(`${variable} is named with ${wanted}`, () => {
    const warnings = unknownVariables({ [variable]: 'hush', TABERN_PORT: '0' });
    assert.equal(warnings, [`${variable} is not a setting; did you mean ${wanted}?`]);
  });
}

for (const variable of ['TABERN_', 'TABERN_XYZ', 'TABERN_SOMETHING_ELSE_ENTIRELY']) {
  test(`${variable} is named without another name, as none is near`, () => {
    assert.equal(unknownVariables({ [variable]: 'hush' }), [`${variable} is not a setting`]);
  });
}

const KNOWN = [
  'TABERN_PORT',
  'TABERN_PORT_FILE',
  'TABERN_TLS_CERT_FILE',
  'TABERN_API_KEY',
  'TABERN_API_KEY_FILE',
  'TABERN_CRASH_AT',
  'TABERNACLE',
  'PORT',
];
for (const variable of KNOWN) {
  test(`${variable} is not named`, () => {
    assert.equal(unknownVariables({ [variable]: 'x' }), []);
  });
}

test('the nearest word needs the fewest changes of a character', () => {
  assert.is(nearest('prot', ['host', 'port', 'proxy']), 'port');
  assert.is(nearest('port', ['host', 'port', 'proxy']), 'port');
});

for (const [to, words] of [
  ['', ['abc', 'a']],
  ['nothing', ['trivial', 'waits']],
  ['a', ['b']],
  ['abcdef', ['abc']],
  ['x', []],
] as const) {
  test(`no word of ${words.join()} is near "${to}"`, () => {
    assert.is(nearest(to, words), undefined);
  });
}

test.run();
