/** The limits of a project, and how long its objects are kept. Only the operator changes them. */
import type { ConsoleSettingsServiceService } from '../../proto/gen/tabern/v1/settings.pb.ts';
import { orNotFound } from '../api/checks.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import type { CoreConfig } from '../config.ts';
import { DELAYS_MS } from '../delivery/retry-schedule.ts';
import { KEYS_MAX } from '../projects/keys.ts';
import type { Quotas } from '../projects/quotas.ts';
import type { Store } from '../store/types.ts';
import { WEBHOOKS_MAX } from '../webhooks/webhooks.ts';

type Handlers = Service<typeof ConsoleSettingsServiceService, ProjectCaller>;
type Options = {
  store: Pick<Store, 'consoleLimits'>;
  quotas: Pick<Quotas, 'limits'>;
  config: CoreConfig;
};

const HOUR_MS = 3_600_000;

export function consoleSettings({ store, quotas, config }: Options): Pick<Handlers, 'getSettings'> {
  return {
    async getSettings(_, { projectId }) {
      const [found, stored] = await Promise.all([
        store.consoleLimits(projectId),
        quotas.limits(projectId),
      ]);
      const project = orNotFound(found, 'Project', projectId);
      const { sessions, invocations, queue, defaultTimeout } = project;
      const work = { sessions, invocations, queue: queue ?? config.queueMax };
      return {
        projectId,
        projectName: project.name,
        createdAt: new Date(project.createdAt),
        defaultTimeout,
        limits: { ...work, ...stored },
        extensionsMax: config.extensionsMax,
        keysMax: KEYS_MAX,
        retention: retentionOf(config),
        webhooks: {
          webhooksMax: WEBHOOKS_MAX,
          ratePerSecond: config.webhookRatePerS,
          retrySeconds: DELAYS_MS.map((ms) => ms / 1_000),
          disableAfterHours: config.webhookRule.disableAfterMs / HOUR_MS,
        },
      };
    },
  };
}

function retentionOf(config: CoreConfig) {
  const days = {
    session: config.sessionDays,
    sessionLog: config.sessionLogDays,
    recording: config.recordingDays,
    download: config.downloadDays,
    invocation: config.invocationDays,
    build: config.buildDays,
    log: config.logDays,
    event: config.eventDays,
  };
  return Object.entries(days).map(([kind, count]) => ({ kind, days: count }));
}
