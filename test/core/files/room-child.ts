/**
 * The process that disk-space.test.ts starts on a small disk, which is its TMPDIR: when the disk
 * fills, running work completes and new work is refused, until space is free again. Prints the
 * results on stdout.
 */
import { existsSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { must } from '../../../proto/common/must.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import { until } from '../../support/poll.ts';
import { boot } from '../boot.ts';

const MIB = 1 << 20;
const rule = { reserveBytes: 4 * MIB, lowBytes: 10 * MIB, highBytes: 14 * MIB, periodMs: 20 };
const [disk = ''] = process.argv.slice(2);

await using app = await boot({}, { disk: rule });
const ballast = join(disk, 'ballast');
const reserve = join(app.dir, 'reserve');
const { clients, asProject, asRunner } = app;
const reserved = () => existsSync(reserve) && statSync(reserve).blocks * 512 >= rule.reserveBytes;
const reasonOf = async (asked: Promise<unknown>): Promise<string> => {
  try {
    await asked;
    return '';
  } catch (error) {
    if (error instanceof Fault) return error.reason;
    throw error;
  }
};
await until(reserved);
const endpoint = 'https://example.com/hook';
const eventTypes = ['functions.invocations.completed'];
await clients.webhooks.createWebhook({ endpoint, eventTypes }, asProject);
const functionId = await app.publish({ name: 'f' });
const { id } = await app.invoke(functionId);
const { leaseId } = must((await app.lease('INVOCATION'))[0], 'an invocation');

// Twice: the first fills it past the mark, the second leaves less than the reserve.
writeFileSync(ballast, Buffer.alloc(24 * MIB));
const refused = await until(async () => (await reasonOf(app.invoke(functionId))) || false);
const isGivenUp = !existsSync(reserve);
writeFileSync(ballast, Buffer.alloc(8 * MIB), { flag: 'a' });
const end = { leaseId, outcome: undefined, sessionStartMs: 0, steps: [] };
const { accepted } = await clients.runners.completeInvocation(end, asRunner);
const { invocation } = await clients.invocations.getInvocation({ id }, asProject);
const claim = { senderId: 's', instanceId: crypto.randomUUID(), max: 1, waitMs: 0 };
const { claims } = await clients.deliveries.claimDeliveries(claim, app.asGateway);
rmSync(ballast);
await until(async () => (await reasonOf(app.invoke(functionId))) === '');
await until(reserved);
const ended = { refused, isGivenUp, accepted, status: invocation?.status, claims: claims.length };
process.stdout.write(JSON.stringify(ended));
