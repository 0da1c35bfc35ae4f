/** Runs a function again, with the same params or edited ones. */
import { useState } from 'preact/hooks';
import { pathOf } from '../../data/route.ts';
import { go, route } from '../../data/router.ts';
import type { RunDetail } from '../../data/types.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Failure, useLoad } from '../../parts/load.tsx';
import { InvokeForm } from '../functions/invoke-form.tsx';
import type { Params } from '../functions/model/schema-form.ts';

type Again = Pick<RunDetail, 'id' | 'functionId' | 'versionId' | 'params'>;

export function RunAgain({ run, close }: { run: Again; close(): void }) {
  const { projectId } = route.value;
  const [isSame, setSame] = useState(false);
  const params = run.params ?? {};
  return (
    <Dialog label="Run again" close={close}>
      <h2>Run again</h2>
      <fieldset class="versions">
        <legend class="hidden">Version</legend>
        <label>
          <input type="radio" name="version" checked={!isSame} onChange={() => setSame(false)} />
          the newest version
        </label>
        <label>
          <input type="radio" name="version" checked={isSame} onChange={() => setSame(true)} />
          the version of this run
        </label>
      </fieldset>
      <InvokeForm
        functionId={run.functionId}
        versionId={isSame ? run.versionId : undefined}
        initial={params as Params}
        started={(id) => {
          close();
          go(pathOf(projectId, 'runs', id));
        }}
      />
      <button type="button" class="plain" onClick={close}>
        Close
      </button>
    </Dialog>
  );
}

/** For a list, whose rows have no params. */
export function RunAgainById({ id, close }: { id: string; close(): void }) {
  const { value, error, again } = useLoad<RunDetail>(`/v1/functions/invocations/${id}`);
  if (error !== undefined) {
    return (
      <Dialog label="Run again" close={close}>
        <Failure error={error} again={again} />
      </Dialog>
    );
  }
  return value === undefined ? null : <RunAgain run={value} close={close} />;
}
