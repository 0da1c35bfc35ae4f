/**
 * `node test/core/store/upgrade/write.ts <version>`: writes a data directory of that release, for
 * upgrade.test.ts of later ones. Run before a release; an existing file is never written again.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { openUploads } from '../../../gateway/routes/files/contexts.ts';
import { makeTenant } from '../../../gateway/tenants/tenant.ts';
import { KEY } from '../../boot.ts';
import { dumpOf } from './dump.ts';

const [version = ''] = process.argv.slice(2);
if (!/^\d+\.\d+\.\d+$/.test(version)) throw new Error('which version? such as 0.1.0');

const app = await openUploads();
const { objects } = await makeTenant(app, KEY);
const names = ['master.key', 'runner.token', 'gateway.token', 'operator.token'];
const keys = Object.fromEntries(
  names.map((name) => [name, readFileSync(join(app.dir, 'keys', name)).toString('base64')]),
);
await app.gateway.close();
await app.core.close();
const db = new Sqlite(join(app.dir, 'tabern.db'));
writeFileSync(join(import.meta.dirname, `${version}.sql`), dumpOf(db));
db.close();
const kept = { apiKey: KEY, objects, keys };
writeFileSync(join(import.meta.dirname, `${version}.json`), `${JSON.stringify(kept, null, 2)}\n`);
process.exit();
