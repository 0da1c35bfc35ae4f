/** One build: its state, its log while it runs, and what it published. */

import { pathOf } from '../../data/route.ts';
import { route } from '../../data/router.ts';
import { useKeys } from '../../parts/keys.tsx';
import { Failure, useLoad } from '../../parts/load.tsx';
import { RunState, Shape } from '../../parts/state.tsx';
import { copy, Foreign, Id, Length, Time } from '../../parts/text.tsx';
import { FollowedLog } from '../../parts/values/log-lines.tsx';
import type { Build } from './model/types.ts';

export function BuildPage({ id }: { id: string }) {
  const path = `/v1/functions/builds/${encodeURIComponent(id)}`;
  const { value, error, again } = useLoad<Build>(path, ['BUILDS'], id);
  useKeys([{ keys: 'c', does: "copy the build's id", run: () => void copy(id) }]);
  if (value === undefined) {
    if (error !== undefined) return <Failure error={error} again={again} />;
    return <p class="hint">Reading…</p>;
  }
  const { status, createdAt, startedAt, endedAt, request, cause } = value;
  const begun = status === 'PENDING' ? undefined : startedAt;
  return (
    <div class="run">
      <header class="session-head">
        <h1>
          Build of <Foreign text={request.entrypoint} max={80} />
        </h1>
        <RunState status={status} />
        <Id value={id} />
        <span class="fact">
          accepted <Time at={createdAt} />
        </span>
        <span class="fact">
          length <Length from={begun} to={endedAt} />
        </span>
      </header>
      {status === 'PENDING' && <p class="hint">It waits for a runner.</p>}
      {status === 'COMPLETED' && <Published build={value} />}
      {cause !== undefined && (
        <section class="cause" aria-label="Cause">
          <h2>
            <Shape name="failed" /> {cause.code}
          </h2>
          <p>
            <Foreign text={cause.message ?? ''} max={2_000} />
          </p>
        </section>
      )}
      <FollowedLog
        id={id}
        startedAt={Date.parse(startedAt ?? createdAt)}
        isRunning={endedAt === undefined}
        none="The build has written nothing."
      />
    </div>
  );
}

function Published({ build }: { build: Build }) {
  const { projectId } = route.value;
  return (
    <section aria-label="Published">
      <h2>Published</h2>
      <ul class="facts-list">
        {(build.builtFunctions ?? []).map(({ id, name }) => (
          <li key={id}>
            <a href={pathOf(projectId, 'functions', id)}>
              <Foreign text={name} max={80} />
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}
