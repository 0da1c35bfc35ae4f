/** Lists of hosts: what an entry stands for, and what is no host. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { hostList, hostOf } from '../../../proto/network/hosts.ts';

const test = suite('proto/network/hosts');

const CASES: [entry: string, contained: string[], others: string[]][] = [
  ['example.com', ['example.com', 'a.example.com', 'a.b.example.com'], ['badexample.com', 'com']],
  ['*.Example.COM', ['example.com', 'a.example.com'], ['example.org']],
  ['example.com.', ['example.com', 'example.com.', 'example.com..'], ['example.com.evil.test']],
  ['bücher.test', ['xn--bcher-kva.test'], ['bcher.test']],
  ['127.0.0.1', ['127.0.0.1'], ['127.0.0.2', '0.0.1', '1']],
  ['1.2.3.4', ['1.2.3.4', '[::ffff:102:304]'], ['[::ffff:102:305]', '[::102:304]']],
  ['::ffff:1.2.3.4', ['1.2.3.4', '[::ffff:102:304]'], ['1.2.3.5']],
  ['0x7f.1', ['127.0.0.1'], ['127.0.0.2']],
  ['::1', ['[::1]'], ['[::2]', '1']],
  ['[2001:DB8:0::1]', ['[2001:db8::1]'], ['[2001:db8::2]']],
  ['test', ['test', 'a.test'], ['atest']],
  ['*', ['example.com', '127.0.0.1', '[::1]'], []],
];

test('an entry contains itself and its subdomains, and nothing else', () => {
  for (const [entry, contained, others] of CASES) {
    const has = hostList([entry]);
    for (const host of contained) assert.ok(has(host), `${entry} contains ${host}`);
    for (const host of others) assert.not.ok(has(host), `${entry} does not contain ${host}`);
  }
  assert.not.ok(hostList([])('example.com'));
  assert.ok(hostList(['a.test', 'b.test'])('x.b.test'));
});

test('text that is no host alone is refused', () => {
  const wrong = [
    ...['', ' ', 'http://a.test', 'a.test/', 'a.test:443', 'u@a.test', 'a b', 'a?b', 'a#b'],
    ...['a*.test', '*.*.test', '**', '[::1', '[::1]:80', '10.0.0.0/8', 'a\\b', '[a]', '%zz.test'],
    '999.1.1.1',
  ];
  for (const entry of wrong) assert.throws(() => hostOf(entry), /is not a host/, entry);
});

test.run();
