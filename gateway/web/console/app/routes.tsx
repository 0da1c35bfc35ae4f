/** The page of each route. */
import type { VNode } from 'preact';
import { pathOf, type Route } from '../data/route.ts';
import { FunctionsPage } from '../pages/functions.tsx';
import { OverviewPage } from '../pages/overview.tsx';
import { RunPage } from '../pages/run.tsx';
import { RunsPage } from '../pages/runs.tsx';
import { SessionPage } from '../pages/session/page.tsx';
import { SessionsPage } from '../pages/sessions.tsx';
import { WebhooksPage } from '../pages/webhooks.tsx';
import { Empty } from '../parts/load.tsx';

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
    case 'webhooks':
      return <WebhooksPage />;
    case 'unknown':
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
}
