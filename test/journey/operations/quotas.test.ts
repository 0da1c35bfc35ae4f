/** A project at its quotas: its sessions continue, and their logs report what is not stored. */
import { chromium, type Page } from 'playwright-core';
import { suite } from 'uvu';
import { is, match, ok } from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { must } from '../../../proto/common/must.ts';
import { until } from '../../support/poll.ts';
import { startSite } from '../../support/servers/site.ts';
import { boot, type Stack } from '../../support/service/stack.ts';

const journey = suite('journey/operations/quotas');

const QUOTAS = {
  TABERN_DOWNLOAD_MIB: '1',
  TABERN_RECORDING_MIB: '1',
  TABERN_CONTEXT_MIB: '1',
  TABERN_CONTEXTS_MAX: '1',
};
const OVER_BYTES = 2 << 20;

type Session = { id: string; connectUrl: string; status: string };
type Entry = { method: string; request: { params: { message?: string } } };

/** Adds so many bytes of a kind to the project's usage. */
async function fill({ stored, projectId }: Stack, kind: string): Promise<void> {
  const row = [newId(), projectId, kind, OVER_BYTES, Date.now()];
  const columns = 'id, project_id, kind, size, created_at, sha256';
  await stored.change(`INSERT INTO blobs (${columns}) VALUES (?, ?, ?, ?, ?, '')`, ...row);
}

async function download(page: Page): Promise<void> {
  const begun = page.waitForEvent('download');
  await page.evaluate(`(() => {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob(['x'.repeat(${OVER_BYTES})]));
    link.download = 'large.txt';
    link.click();
  })()`);
  await begun;
}

journey('a session at its project’s quotas continues, and its log has a warning', async () => {
  await using site = await startSite();
  await using stack = await boot({ env: QUOTAS });
  const context = await stack.call<{ id: string }>('/v1/contexts', { json: {} });
  const refused = await stack.fetch('/v1/contexts', { json: {} });
  is(refused.status, 409);
  is(refused.headers.get('x-should-retry'), 'false');
  match(await refused.text(), /quota `contexts` \(1\)/);
  for (const kind of ['RECORDING', 'CONTEXT']) await fill(stack, kind);

  const browserSettings = { context: { id: context.id, persist: true } };
  const { id, connectUrl } = await stack.call<Session>('/v1/sessions', {
    json: { browserSettings },
  });
  const browser = await chromium.connectOverCDP(connectUrl);
  const page = must(browser.contexts()[0]?.pages()[0], 'a page');
  await page.goto(site.url);
  await download(page);
  is(await page.evaluate('1 + 1'), 2);
  await browser.close();
  const done = await until(async () => {
    const session = await stack.call<Session>(`/v1/sessions/${id}`);
    return !/RUNNING|PENDING/.test(session.status) && session;
  });
  is(done.status, 'COMPLETED');

  const entries = await stack.call<Entry[]>(`/v1/sessions/${id}/logs`);
  const warnings = entries.flatMap(({ method, request }) =>
    method === 'Tabern.warning' ? [String(request.params.message)] : [],
  );
  for (const quota of ['downloadMib', 'recordingMib', 'contextMib']) {
    const own = warnings.filter((message) => message.includes(`quota \`${quota}\` (1 MiB)`));
    is(own.length, 1, `${quota}: ${warnings.join(' | ')}`);
  }
  const { downloads } = await stack.call<{ downloads: unknown[] }>(`/v1/downloads?sessionId=${id}`);
  is(downloads.length, 0);
  type Quota = { used: number; limit: number };
  const usage = await stack.call<{ storage: Record<string, Quota> }>(
    `/v1/projects/${stack.projectId}/usage`,
  );
  ok((usage.storage['recordingBytes']?.used ?? 0) >= OVER_BYTES);
});

journey.run();
