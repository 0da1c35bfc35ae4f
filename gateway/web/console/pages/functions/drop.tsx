/** A place to drop a file, or to choose one. */
import { useRef, useState } from 'preact/hooks';

export function Drop({ take }: { take(file: File): void }) {
  const input = useRef<HTMLInputElement>(null);
  const [isOver, setOver] = useState(false);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the button below does the same
    <div
      class="drop"
      data-over={isOver}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        const [file] = event.dataTransfer?.files ?? [];
        if (file !== undefined) take(file);
      }}
    >
      <p>Drop a zip or a tar.gz of the project here, or one source file.</p>
      <button type="button" onClick={() => input.current?.click()}>
        Choose a file
      </button>
      <input
        ref={input}
        type="file"
        hidden
        accept=".zip,.tgz,.gz,.ts,.mts,.js,.mjs"
        onChange={({ currentTarget }) => {
          const [file] = currentTarget.files ?? [];
          if (file !== undefined) take(file);
          currentTarget.value = ''; // the same file may be chosen again
        }}
      />
    </div>
  );
}
