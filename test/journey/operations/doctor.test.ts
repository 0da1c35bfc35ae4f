/** `tabern doctor` finds each of five planted faults. */
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { suite } from 'uvu';
import { equal, is, match } from 'uvu/assert';
import { freePort } from '../../support/port.ts';
import { startCore, tabern } from '../../support/service/command.ts';
import { tempDirectory } from '../../support/temp.ts';

const journey = suite('journey/operations/doctor');

type Findings = { check: string; level: string; says: string; fix?: string }[];

async function diagnose(env: Record<string, string>) {
  const { code, out, err } = await tabern(['doctor', '--json'], env).ended;
  if (out === '') throw new Error(err);
  const { isFit, findings } = JSON.parse(out) as { isFit: boolean; findings: Findings };
  is(code, isFit ? 0 : 1);
  const failed = findings.filter(({ level }) => level === 'fail');
  for (const { fix = '' } of failed) match(fix, /\w/);
  return { isFit, failed: failed.map(({ check }) => check), findings };
}

journey('a healthy machine passes, also while the service runs', async () => {
  await using dir = tempDirectory();
  const env = { TABERN_DATA: join(dir.path, 'data'), TABERN_PORT: String(await freePort()) };
  await using _ = await startCore(env);
  const { isFit, failed, findings } = await diagnose(env);
  equal(failed, [], JSON.stringify(findings));
  is(isFit, true);
  const { says } = findings.find(({ check }) => check === 'chrome') ?? { says: '' };
  match(says, /Chrome\/\d+/);
});

journey('five planted faults are found, each with its fix', async () => {
  await using dir = tempDirectory();
  const dataDir = join(dir.path, 'data');
  {
    await using _ = await startCore({ TABERN_DATA: dataDir });
  }
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const { port } = taken.address() as { port: number };
  writeFileSync(join(dataDir, 'keys', 'master.key'), Buffer.alloc(32, 1).toString('base64'));
  const env = { TABERN_DATA: dataDir, TABERN_CHROME: '/none', TABERN_PORT: String(port) };
  equal((await diagnose(env)).failed, ['master key', 'port', 'chrome']);
  taken.close();

  const database = join(dataDir, 'tabern.db');
  const bytes = readFileSync(database);
  bytes.fill(0xaa, 4_096 * 3, 4_096 * 6);
  writeFileSync(database, bytes);
  const free = { ...env, TABERN_PORT: String(await freePort()) };
  equal((await diagnose(free)).failed, ['database', 'chrome']);
  equal((await diagnose({ ...free, TABERN_DATA: '/proc/tabern' })).failed, ['data', 'chrome']);

  const { code, out } = await tabern(['doctor'], { ...free, TABERN_DATA: '/proc/tabern' }).ended;
  is(code, 1);
  match(out, /^fail {2}data .*\n +-> set TABERN_DATA/m);
  match(out, /^ok {4}port /m);
});

journey.run();
