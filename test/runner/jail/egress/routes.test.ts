/** The routes of a session's `proxies`. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { upstreamOf } from '../../../../proto/network/session-proxies.ts';
import { openPatterns } from '../../../../runner/jail/egress/patterns.ts';
import { planOf, upstreamFor } from '../../../../runner/jail/egress/routes.ts';

const proxies = suite('runner/jail/egress/routes');
const patternOf = openPatterns().ofSession();
const pool = upstreamOf('http://pool.test:3128', { isManaged: true });

proxies('none, false and an empty list are direct connections without a warning', async () => {
  for (const said of [undefined, false, []]) {
    assert.equal(planOf(said, pool, patternOf), { routes: [], warnings: [] });
  }
});

proxies("true is the operator's proxy, or a warning where there is none", async () => {
  const { routes, warnings } = planOf(true, pool, patternOf);
  assert.is(await upstreamFor('a.test', routes), pool);
  assert.equal(warnings, []);
  const without = planOf(true, undefined, patternOf);
  assert.is(await upstreamFor('a.test', without.routes), undefined);
  assert.match(without.warnings.join(), /TABERN_PROXY/);
});

proxies('the first matching entry applies', async () => {
  const { routes, warnings } = planOf(
    [
      { type: 'none', domainPattern: 'internal\\.test$' },
      { type: 'external', server: 'socks5://s.test', username: 'u', domainPattern: 'shop' },
      { type: 'browserbase' },
    ],
    pool,
    patternOf,
  );
  assert.equal(warnings, []);
  assert.is(await upstreamFor('x.internal.test', routes), undefined);
  assert.is((await upstreamFor('shop.test', routes))?.protocol, 'socks5');
  assert.is((await upstreamFor('shop.test', routes))?.username, 'u');
  assert.is(await upstreamFor('else.test', routes), pool);
});

proxies('a geolocation is a warning', async () => {
  const { routes, warnings } = planOf(
    [{ type: 'browserbase', geolocation: { country: 'DE' } }],
    pool,
    patternOf,
  );
  assert.is(routes.length, 1);
  assert.is(warnings.length, 1);
  assert.match(warnings[0] ?? '', /geolocation/);
});

proxies('an invalid entry does not make connections direct', async () => {
  const ftp = { type: 'external', server: 'ftp://u:hidden@p.test' };
  assert.throws(() => planOf([ftp], pool, patternOf), /is not/);
  const large = { type: 'none', domainPattern: '(?:..){1000}' };
  assert.throws(() => planOf([large], pool, patternOf), /domainPattern must/);
  const { routes } = planOf([{ type: 'none', domainPattern: '(' }], pool, patternOf);
  const refused = await upstreamFor('a.test', routes).catch(String);
  assert.match(String(refused), /is not a regular expression of RE2/);
});

proxies.run();
