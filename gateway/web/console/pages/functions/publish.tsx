/**
 * Publishes functions from the browser: a zip of a project, or one file. The archive is packed
 * here, and uploaded as `tabern publish` uploads it.
 */
import { useState } from 'preact/hooks';
import { send, sentenceOf } from '../../data/api.ts';
import { bytesText } from '../../data/format.ts';
import { pathOf } from '../../data/route.ts';
import { go, route } from '../../data/router.ts';
import { Command, Foreign } from '../../parts/text.tsx';
import { Drop } from './drop.tsx';
import { Refusal } from './field.tsx';
import { entryFiles, projectOf } from './model/archive/project.ts';
import { ARCHIVE_MAX_BYTES, type ProjectFile, packed } from './model/archive/tar.ts';

/** Ours: a zip may also have what is left out. */
const ZIP_MAX_BYTES = 200 << 20;
const FILE_MAX_BYTES = 1 << 20;
const TEXT_MAX_CHARS = 1_000_000;

/** Ready to upload: files to pack, or an archive that is a tar already. */
type Chosen = {
  name: string;
  about: string;
  entries: string[];
  archive(): Promise<Blob>;
};

const SAMPLE = `import { defineFn } from 'tabern';

defineFn('hello', async (ctx, params) => {
  console.log('session', ctx.session.id);
  return { hello: params.name ?? 'world' };
});
`;

const MANIFEST = `{
  "name": "pasted",
  "private": true,
  "type": "module",
  "dependencies": {}
}
`;

export function PublishPage() {
  const [chosen, setChosen] = useState<Chosen>();
  const [problem, setProblem] = useState<string>();
  const choose = async (file: File) => {
    setProblem(undefined);
    setChosen(undefined);
    try {
      setChosen(await chosenOf(file));
    } catch (error) {
      setProblem(`${file.name}: ${sentenceOf(error)}`);
    }
  };
  return (
    <div class="publish">
      <h1>Publish functions</h1>
      <section aria-label="From the command line">
        <h2>From the command line</h2>
        <p class="hint">In the folder of the project:</p>
        <Command text="tabern publish index.ts" />
      </section>
      <section aria-label="A project">
        <h2>A project</h2>
        <Drop take={(file) => void choose(file)} />
        {problem !== undefined && <Refusal text={problem} />}
        {chosen !== undefined && <Project key={chosen.name} chosen={chosen} />}
      </section>
      <Paste />
    </div>
  );
}

function Project({ chosen }: { chosen: Chosen }) {
  const [entry, setEntry] = useState(chosen.entries[0] ?? 'index.ts');
  const upload = useUpload();
  return (
    <form
      aria-label="Project to publish"
      onSubmit={(event) => {
        event.preventDefault();
        void upload.run(entry, chosen.archive);
      }}
    >
      <p>
        <Foreign text={chosen.name} max={120} />: {chosen.about}
      </p>
      <div class="field">
        <label for="entry">Entry file</label>
        <input
          id="entry"
          list="entries"
          value={entry}
          required
          autocomplete="off"
          spellcheck={false}
          onInput={({ currentTarget }) => setEntry(currentTarget.value)}
        />
        <datalist id="entries">
          {chosen.entries.slice(0, 100).map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      </div>
      <Submit upload={upload} />
    </form>
  );
}

function Paste() {
  const [name, setName] = useState('index.ts');
  const [text, setText] = useState('');
  const [manifest, setManifest] = useState(MANIFEST);
  const upload = useUpload();
  const files = () => [file(name, text), file('package.json', manifest)];
  return (
    <section aria-label="One file">
      <h2>One file</h2>
      <form
        aria-label="File to publish"
        onSubmit={(event) => {
          event.preventDefault();
          void upload.run(name, () => packed(files()));
        }}
      >
        <PastedName name={name} set={setName} />
        <div class="field">
          <label for="pasted">Source</label>
          <textarea
            id="pasted"
            rows={10}
            required
            maxLength={TEXT_MAX_CHARS}
            spellcheck={false}
            placeholder={SAMPLE}
            value={text}
            onInput={({ currentTarget }) => setText(currentTarget.value)}
          />
        </div>
        <Manifest text={manifest} set={setManifest} />
        <div class="head">
          <Submit upload={upload} />
          <button type="button" class="plain" onClick={() => setText(SAMPLE)}>
            Use the example
          </button>
        </div>
      </form>
    </section>
  );
}

function PastedName({ name, set }: { name: string; set(name: string): void }) {
  return (
    <div class="field">
      <label for="pasted-name">Name</label>
      <input
        id="pasted-name"
        value={name}
        required
        spellcheck={false}
        onInput={({ currentTarget }) => set(currentTarget.value)}
      />
    </div>
  );
}

function Manifest({ text, set }: { text: string; set(text: string): void }) {
  return (
    <details>
      <summary>package.json, for its dependencies</summary>
      <textarea
        aria-label="package.json"
        rows={7}
        maxLength={TEXT_MAX_CHARS}
        spellcheck={false}
        value={text}
        onInput={({ currentTarget }) => set(currentTarget.value)}
      />
    </details>
  );
}

type Upload = {
  isBusy: boolean;
  problem: string | undefined;
  run(entrypoint: string, archive: () => Promise<Blob>): Promise<void>;
};

function Submit({ upload: { isBusy, problem } }: { upload: Upload }) {
  return (
    <>
      {problem !== undefined && <Refusal text={problem} />}
      <button type="submit" class="main" disabled={isBusy}>
        {isBusy ? 'Uploading…' : 'Publish'}
      </button>
    </>
  );
}

/** Uploads, and shows the build. */
function useUpload(): Upload {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  const run: Upload['run'] = async (entrypoint, archive) => {
    setBusy(true);
    setProblem(undefined);
    try {
      const form = new FormData();
      form.set('metadata', JSON.stringify({ entrypoint }));
      form.set('archive', await archive(), 'archive.tar.gz');
      const { id } = await send<{ id: string }>('POST', '/v1/functions/builds', form);
      go(pathOf(route.value.projectId, 'builds', id));
    } catch (error) {
      setProblem(sentenceOf(error));
      setBusy(false);
    }
  };
  return { isBusy, problem, run };
}

/** Throws an Error with a sentence for a person. */
async function chosenOf(given: File): Promise<Chosen> {
  const { name, size } = given;
  if (/\.(?:tar\.gz|tgz)$/i.test(name)) {
    checkSize(size, ARCHIVE_MAX_BYTES);
    const about = `${bytesText(size)}, uploaded as it is`;
    return { name, about, entries: ['index.ts'], archive: async () => given };
  }
  if (/\.zip$/i.test(name)) {
    checkSize(size, ZIP_MAX_BYTES);
    const { files, entries, leftOut } = await projectOf(given);
    const bytes = files.reduce((sum, one) => sum + one.bytes.length, 0);
    const rest = leftOut === 0 ? '' : `; ${leftOut} left out (dependencies, secrets, outputs)`;
    const about = `${files.length} files, ${bytesText(bytes)}${rest}`;
    return { name, about, entries, archive: () => packed(files) };
  }
  if (!entryFiles([name]).includes(name)) {
    throw new Error('a zip, a tar.gz or one source file (.ts, .mts, .js, .mjs) can be published');
  }
  checkSize(size, FILE_MAX_BYTES);
  const source = file(name, await given.text());
  const manifest = file('package.json', '{"name":"dropped","private":true,"type":"module"}');
  const archive = () => packed([source, manifest]);
  return { name, about: bytesText(size), entries: [name], archive };
}

function checkSize(size: number, max: number): void {
  if (size > max) throw new Error(`it has more than ${max >> 20} MiB`);
}

function file(name: string, text: string): ProjectFile {
  return { name, bytes: new TextEncoder().encode(text) };
}
