/** The page of each route. The lists are part of the first load, the other pages are not. */
import type { VNode } from 'preact';
import { pathOf, type Route } from '../data/route.ts';
import { FunctionsPage } from '../pages/functions/functions.tsx';
import { OverviewPage } from '../pages/overview/overview.tsx';
import { RunsPage } from '../pages/runs/runs.tsx';
import { SessionsPage } from '../pages/sessions/sessions.tsx';
import { WebhooksPage } from '../pages/webhooks/webhooks.tsx';
import { lazy } from '../parts/lazy.tsx';
import { Empty } from '../parts/load.tsx';

const SessionPage = lazy(async () => (await import('../pages/session/page.tsx')).SessionPage);
const ContextsPage = lazy(
  async () => (await import('../pages/contexts/contexts.tsx')).ContextsPage,
);
const FilesPage = lazy(async () => (await import('../pages/files/files.tsx')).FilesPage);
const UsagePage = lazy(async () => (await import('../pages/usage/usage.tsx')).UsagePage);
const SettingsPage = lazy(
  async () => (await import('../pages/settings/settings.tsx')).SettingsPage,
);
const WebhookPage = lazy(async () => (await import('../pages/webhooks/webhook.tsx')).WebhookPage);
const FunctionPage = lazy(
  async () => (await import('../pages/functions/function.tsx')).FunctionPage,
);
const PublishPage = lazy(async () => (await import('../pages/functions/publish.tsx')).PublishPage);
const BuildsPage = lazy(async () => (await import('../pages/functions/builds.tsx')).BuildsPage);
const BuildPage = lazy(async () => (await import('../pages/functions/build.tsx')).BuildPage);
const RunPage = lazy(async () => (await import('../pages/runs/run.tsx')).RunPage);

const OperatorPage = lazy(async () => (await import('../pages/operator/page.tsx')).OperatorPage);

const AuditPage = lazy(async () => (await import('../pages/operator/events.tsx')).AuditPage);

export function pageOf({ page, projectId, id }: Route): VNode {
  switch (page) {
    case 'overview':
      return <OverviewPage />;
    case 'sessions':
      return <SessionsPage />;
    case 'session':
      return <SessionPage key={id} id={id} />;
    case 'runs':
      return <RunsPage />;
    case 'run':
      return <RunPage key={id} id={id} />;
    case 'functions':
      return <FunctionsPage />;
    case 'function':
      return <FunctionPage key={id} id={id} />;
    case 'publish':
      return <PublishPage />;
    case 'builds':
      return <BuildsPage />;
    case 'build':
      return <BuildPage key={id} id={id} />;
    case 'webhooks':
      return <WebhooksPage />;
    case 'webhook':
      return <WebhookPage key={id} id={id} />;
    case 'contexts':
      return <ContextsPage />;
    case 'files':
      return <FilesPage />;
    case 'usage':
      return <UsagePage />;
    case 'settings':
      return <SettingsPage />;
    case 'share': // without a login: main.tsx
    case 'audit':
      return <AuditPage />;
    case 'operator':
      return <OperatorPage key={id} path={id} />;
    case 'unknown':
      return <NoPage projectId={projectId} />;
  }
}

function NoPage({ projectId }: { projectId: string }) {
  return (
    <Empty title="There is no such page.">
      <p>
        {projectId === '' ? (
          <a href="/console">Overview</a>
        ) : (
          <a href={pathOf(projectId)}>Overview</a>
        )}
      </p>
    </Empty>
  );
}
