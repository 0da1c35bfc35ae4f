/**
 * Runs a function: a form made from the schema of its params, or JSON. The service checks them; a
 * refusal is shown at the field that it names.
 */
import { useState } from 'preact/hooks';
import { api, sentenceOf } from '../../data/api.ts';
import { Failure, useLoad } from '../../parts/load.tsx';
import { FieldRow, Refusal } from './field.tsx';
import {
  type Field,
  fieldsOf,
  type Params,
  type Problem,
  paramsOf,
  parsedParams,
  problemOf,
  type Read,
  type Texts,
  textsOf,
} from './model/schema-form.ts';
import type { Invoked } from './model/types.ts';

/** As the service accepts at most. */
const PARAMS_MAX_CHARS = 65_536;

type Props = {
  functionId: string;
  /** The newest one when undefined. */
  versionId?: string | undefined;
  /** What the form begins with; the params of the newest run without a schema when undefined. */
  initial?: Params | undefined;
  /** Called with the id of the accepted run. */
  started(id: string): void;
};

export function InvokeForm({ functionId, versionId, initial, started }: Props) {
  const { value, error, again } = useLoad<Invoked>(`/console/api/v1/functions/${functionId}`);
  const isOther = versionId !== undefined && value !== undefined && versionId !== value.versionId;
  const other = useLoad<{ userParamsSchema?: unknown }>(
    isOther ? `/v1/functions/versions/${versionId}` : '',
  );
  const failed = error ?? other.error;
  if (failed !== undefined) return <Failure error={failed} again={error ? again : other.again} />;
  if (value === undefined || (isOther && other.value === undefined)) {
    return <p class="hint">Reading…</p>;
  }
  const fields = fieldsOf(isOther ? other.value?.userParamsSchema : parsed(value.paramsSchemaJson));
  const last = initial ?? (parsed(value.lastParamsJson) as Params | undefined);
  const invoke = async (params: Params) => {
    const wanted = versionId === undefined ? { params } : { params, versionId };
    const { id } = await api<{ id: string }>(`/v1/functions/${functionId}/invoke`, wanted);
    started(id);
  };
  // another version has other fields
  return (
    <ParamsForm
      key={versionId ?? ''}
      fields={fields}
      initial={initial ?? (fields === undefined ? last : {})}
      last={last}
      run={invoke}
    />
  );
}

type FormProps = {
  fields: readonly Field[] | undefined;
  initial: Params | undefined;
  /** Params of the newest run. */
  last: Params | undefined;
  /** Throws when the params are refused. */
  run(params: Params): Promise<void>;
};

/** The form alone: `run` may be any way to start a run. */
export function ParamsForm({ fields, initial = {}, last, run }: FormProps) {
  const form = useParams(fields, initial);
  const { texts, json, problem, setProblem } = form;
  const [isBusy, setBusy] = useState(false);
  const submit = async () => {
    const read = form.read();
    setProblem('problem' in read ? read.problem : undefined);
    if ('problem' in read) return;
    setBusy(true);
    try {
      await run(read.params);
    } catch (error) {
      setProblem(problemOf(sentenceOf(error), json === undefined ? (fields ?? []) : []));
    } finally {
      setBusy(false);
    }
  };
  const keyed = problem?.key;
  return (
    <form
      class="invoke"
      aria-label="Params"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      {json === undefined ? (
        (fields ?? []).map((field) => (
          <FieldRow
            key={field.key}
            field={field}
            text={texts[field.key] ?? ''}
            problem={keyed === field.key ? problem?.text : undefined}
            set={(text) => form.setText(field.key, text)}
          />
        ))
      ) : (
        <JsonField json={json} isWrong={problem !== undefined} set={form.setJson} />
      )}
      {problem !== undefined && keyed === undefined && <Refusal text={problem.text} />}
      <div class="head">
        <button type="submit" class="main" disabled={isBusy}>
          Run
        </button>
        {fields !== undefined && (
          <button type="button" class="plain" onClick={form.toggle}>
            {json === undefined ? 'Edit as JSON' : 'Use the form'}
          </button>
        )}
        {last !== undefined && last !== initial && (
          <button type="button" class="plain" onClick={() => form.fill(last)}>
            Params of the last run
          </button>
        )}
      </div>
    </form>
  );
}

type JsonProps = { json: string; isWrong: boolean; set(json: string): void };

function JsonField({ json, isWrong, set }: JsonProps) {
  return (
    <label>
      <span>Params, as a JSON object</span>
      <textarea
        name="params"
        rows={Math.min(16, Math.max(5, json.split('\n').length + 1))}
        maxLength={PARAMS_MAX_CHARS}
        spellcheck={false}
        value={json}
        aria-invalid={isWrong}
        onInput={({ currentTarget }) => set(currentTarget.value)}
      />
    </label>
  );
}

/** The texts of the fields, or one JSON text. */
function useParams(fields: readonly Field[] | undefined, initial: Params) {
  const shown = fields && textsOf(fields, initial);
  const [texts, setTexts] = useState<Texts>(shown ?? {});
  const [json, setJson] = useState(shown === undefined ? jsonOf(initial) : undefined);
  const [problem, setProblem] = useState<Problem>();
  const read = (): Read => {
    return json === undefined ? paramsOf(fields ?? [], texts) : parsedParams(json);
  };
  const fill = (params: Params) => {
    const filled = fields && textsOf(fields, params);
    setProblem(undefined);
    setTexts(filled ?? {});
    setJson(filled === undefined ? jsonOf(params) : undefined);
  };
  const toggle = () => {
    const now = read();
    if ('problem' in now) {
      setProblem(now.problem);
      return;
    }
    if (json === undefined) {
      setJson(jsonOf(now.params));
      setProblem(undefined);
      return;
    }
    const isShown = fields !== undefined && textsOf(fields, now.params) !== undefined;
    if (isShown) fill(now.params);
    else setProblem({ key: undefined, text: 'The form cannot show these params.' });
  };
  const setText = (key: string, text: string) => {
    setTexts((old) => Object.fromEntries([...Object.entries(old), [key, text]]));
    if (problem?.key === key) setProblem(undefined);
  };
  return { texts, json, problem, setProblem, setText, setJson, read, fill, toggle };
}

function jsonOf(params: Params): string {
  return JSON.stringify(params, undefined, 2);
}

/** Core wrote the text, so it is JSON. */
function parsed(json: string | undefined): unknown {
  return json === undefined ? undefined : JSON.parse(json);
}
