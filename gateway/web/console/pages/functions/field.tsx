/** One field of a form of params, with what is wrong with it. */
import { useId } from 'preact/hooks';
import { Foreign } from '../../parts/text.tsx';
import type { Field } from './model/schema-form.ts';

type Props = {
  field: Field;
  text: string;
  problem: string | undefined;
  set(text: string): void;
};

export function FieldRow({ field, text, problem, set }: Props) {
  const id = useId();
  const { label, hint, isRequired } = field;
  return (
    <div class="field">
      <label for={id}>
        <Foreign text={label} max={120} />
        {isRequired && <small> required</small>}
      </label>
      <Input id={id} field={field} text={text} isWrong={problem !== undefined} set={set} />
      {problem !== undefined && (
        <p id={`${id}-problem`} class="error" role="alert">
          <Foreign text={problem} max={600} />
        </p>
      )}
      {hint !== '' && (
        <small id={`${id}-hint`}>
          <Foreign text={hint} max={300} />
        </small>
      )}
    </div>
  );
}

type InputProps = {
  id: string;
  field: Field;
  text: string;
  isWrong: boolean;
  set(text: string): void;
};

function Input({ id, field, text, isWrong, set }: InputProps) {
  const { kind, hint, choices } = field;
  const told = [isWrong && `${id}-problem`, hint !== '' && `${id}-hint`].filter(Boolean).join(' ');
  const common = {
    id,
    value: text,
    'aria-invalid': isWrong,
    ...(told === '' ? {} : { 'aria-describedby': told }),
  };
  if (kind === 'boolean' || kind === 'choice') {
    return (
      <select {...common} onChange={({ currentTarget }) => set(currentTarget.value)}>
        <option value="">not set</option>
        {(kind === 'boolean' ? ['true', 'false'] : choices).map((one) => (
          <option key={one} value={one}>
            {one.slice(0, 80)}
          </option>
        ))}
      </select>
    );
  }
  if (kind === 'json') {
    return (
      <textarea
        {...common}
        rows={3}
        spellcheck={false}
        onInput={({ currentTarget }) => set(currentTarget.value)}
      />
    );
  }
  return (
    <input
      {...common}
      type="text"
      inputMode={kind === 'number' ? 'decimal' : 'text'}
      autocomplete="off"
      spellcheck={false}
      onInput={({ currentTarget }) => set(currentTarget.value)}
    />
  );
}

/** What is wrong with the params as a whole. */
export function Refusal({ text }: { text: string }) {
  return (
    <p class="error" role="alert">
      <Foreign text={text} max={600} />
    </p>
  );
}
