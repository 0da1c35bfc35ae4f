/** Which URLs may be endpoints: proto/spec/webhooks.md 8. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { cidrList } from '../../../proto/network/public-addresses.ts';
import { checkEndpoint } from '../../../proto/network/webhook-endpoint.ts';

const endpoint = suite('proto/network/webhook-endpoint');

const PUBLIC = [
  'https://example.com',
  'https://example.com/hook?x=1',
  'https://EXAMPLE.com:8443/',
  'https://xn--bcher-kva.example/',
  'https://8.8.8.8/',
  'https://[2606:4700::1111]/',
  'https://example.com./',
  `https://example.com/${'x'.repeat(2_048 - 20)}`,
];
const REFUSED = [
  '',
  'nonsense',
  'http://example.com/',
  'ftp://example.com/',
  'https://',
  'https:///example.com',
  'https:example.com',
  'https:/example.com',
  'https://?x',
  'https://user@example.com/',
  'https://user:pass@example.com/',
  'https://:pass@example.com/',
  'https://example.com/#part',
  'https://example.com/#',
  'https://example.com:80/',
  'https://example.com:22/',
  'https://example.com:6379/',
  'https://example.com:5432/',
  'https://example.com:65536/',
  'https://localhost/',
  'https://LOCALHOST./',
  'https://a.localhost/',
  'https://printer.local/',
  'https://metadata.google.internal/',
  'https://router.home.arpa/',
  'https://intranet/',
  'https://127.0.0.1/',
  'https://127.1/',
  'https://2130706433/',
  'https://0x7f.1/',
  'https://0177.0.0.1/',
  'https://１２７.0.0.1/',
  'https://127.0.0.1./',
  'https://0.0.0.0/',
  'https://10.1.2.3/',
  'https://169.254.169.254/latest/meta-data/',
  'https://172.16.0.1/',
  'https://192.168.1.1/',
  'https://100.64.0.1/',
  'https://224.0.0.1/',
  'https://255.255.255.255/',
  'https://[::1]/',
  'https://[::]/',
  'https://[::ffff:127.0.0.1]/',
  'https://[::ffff:7f00:1]/',
  'https://[64:ff9b::7f00:1]/',
  'https://[fe80::1]/',
  'https://[fd00::1]/',
  'https://[2002:7f00:1::]/',
  'https://[2001:db8::1]/',
  'https://a..b/',
  `https://example.com/${'x'.repeat(2_048 - 19)}`,
];

for (const url of PUBLIC) {
  endpoint(`allowed: ${url.slice(0, 60)}`, () => assert.is(checkEndpoint(url).ok, true));
}
for (const url of REFUSED) {
  endpoint(`refused: ${url.slice(0, 60)}`, () => assert.is(checkEndpoint(url).ok, false));
}

endpoint(
  "the operator's list opens literal addresses and localhost, at any port but a database's",
  () => {
    const allow = cidrList(['127.0.0.0/8', '10.0.0.0/24']);
    for (const url of [
      'https://127.0.0.1:8443/',
      'https://localhost:443/',
      'https://10.0.0.7:81/',
    ]) {
      assert.is(checkEndpoint(url, allow).ok, true, url);
      assert.is(checkEndpoint(url).ok, false, url);
    }
    for (const url of [
      'https://10.0.1.7/',
      'https://[::1]/',
      'https://x.local/',
      'https://127.0.0.1:6379/',
    ]) {
      assert.is(checkEndpoint(url, allow).ok, false, url);
    }
    const isIpv6Allowed = checkEndpoint('https://localhost/', cidrList(['::1/128'])).ok;
    assert.is(isIpv6Allowed, true);
  },
);

endpoint('the key is the same for spellings of one URL, and not for others', () => {
  const key = (url: string) => {
    const verdict = checkEndpoint(url);
    return verdict.ok ? verdict.key : undefined;
  };
  assert.is(key('https://Example.com'), key('https://example.com:443/'));
  assert.is.not(key('https://example.com/a'), key('https://example.com/A'));
});

endpoint.run();
