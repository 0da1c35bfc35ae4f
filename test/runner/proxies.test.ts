/** What a session's `proxies` become. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { upstreamOf } from '../../proto/proxies.ts';
import { upstreamFor } from '../../runner/jail/routes.ts';
import { planOf } from '../../runner/proxies.ts';

const proxies = suite('runner/proxies');
const pool = upstreamOf('http://pool.test:3128', { isManaged: true });

proxies('none, false and an empty list leave straight, without a word', () => {
  for (const said of [undefined, false, []]) {
    assert.equal(planOf(said, pool), { routes: [], warnings: [] });
  }
});

proxies("true is the operator's proxy, or a warning where there is none", () => {
  const { routes, warnings } = planOf(true, pool);
  assert.is(upstreamFor('a.test', routes), pool);
  assert.equal(warnings, []);
  const without = planOf(true, undefined);
  assert.is(upstreamFor('a.test', without.routes), undefined);
  assert.match(without.warnings.join(), /TABERN_PROXY/);
});

proxies('the first entry that matches wins', () => {
  const { routes, warnings } = planOf(
    [
      { type: 'none', domainPattern: 'internal\\.test$' },
      { type: 'external', server: 'socks5://s.test', username: 'u', domainPattern: 'shop' },
      { type: 'browserbase' },
    ],
    pool,
  );
  assert.equal(warnings, []);
  assert.is(upstreamFor('x.internal.test', routes), undefined);
  assert.is(upstreamFor('shop.test', routes)?.protocol, 'socks5');
  assert.is(upstreamFor('shop.test', routes)?.username, 'u');
  assert.is(upstreamFor('else.test', routes), pool);
});

proxies('a geolocation is a warning', () => {
  const { routes, warnings } = planOf(
    [{ type: 'browserbase', geolocation: { country: 'DE' } }],
    pool,
  );
  assert.is(routes.length, 1);
  assert.is(warnings.length, 1);
  assert.match(warnings[0] ?? '', /geolocation/);
});

proxies('an entry that makes no sense leaves nothing straight', () => {
  const entries = [
    { type: 'external', server: 'ftp://u:hidden@p.test' },
    { type: 'external', server: 'p.test:1', domainPattern: '(' },
  ];
  for (const entry of entries) assert.throws(() => planOf([entry], pool), /is not/);
});

proxies.run();
