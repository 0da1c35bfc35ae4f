/** What an attack is, and what containing it means. The table README prints is made of these. */

/** How a contained attack ends. */
export type Ending =
  /** The handler lives and gives what each attempt said: `no: <why>`, all of them. */
  | { type: 'refused' }
  /** Its own build fails, and says why. */
  | { type: 'unbuilt'; why: RegExp }
  /** It is built as if what it tries were not there. */
  | { type: 'built' }
  /** Its own run fails, and says why. */
  | { type: 'fails'; why: RegExp }
  /** Its own project's process ends with it, and the run says why. */
  | { type: 'lost'; why: RegExp }
  /** It is ended when its time is over. */
  | { type: 'ended' }
  /** It gives this, and did no harm. */
  | { type: 'gives'; value: unknown; printed?: (lines: readonly string[]) => boolean }
  /** It may lose its own process, or be ended: nobody else's. */
  | { type: 'own'; why?: RegExp }
  /** Not run there: it aims at processes of the service, which are the same in every sandbox. */
  | { type: 'unrun' }
  /** Not contained; README says so with these words. Its body is not run on that launcher. */
  | { type: 'open'; why: string };

export type Attack = {
  /** What it tries, for the table. */
  name: string;
  /** Of an async handler: (ctx, params), with `attempt` and `builtin`. */
  body?: string;
  /** Instead of a body: a whole bundle. */
  source?: string;
  ending: Ending;
  /** Where landlock contains it otherwise. */
  landlock?: Ending;
  /** Where it ends otherwise in a host that Deno runs. */
  deno?: Ending;
  /** With no sandbox at all each attempt succeeds: run so, as proof that it could. */
  hasControl?: true;
};

export type Kind = { title: string; attacks: readonly Attack[] };
export type Launcher = 'bwrap' | 'landlock';
/** Node in each launcher's jail; Deno in bwrap's, the only one that it starts in. */
export type Place = Launcher | 'deno';

/** It does no harm to another tenant; run on the whole service, in its usual sandbox alone. */
export const harmless = {
  ending: { type: 'gives', value: undefined },
  landlock: { type: 'unrun' },
  deno: { type: 'unrun' },
} as const satisfies Partial<Attack>;

/** As harmless, and run there, too. */
export const harmlessIn = (...places: Exclude<Place, 'bwrap'>[]) => ({
  ...harmless,
  ...Object.fromEntries(places.map((place) => [place, harmless.ending])),
});

/** The variables of a whole service in that place. */
export const SERVICE_ENV: Readonly<Record<Place, Record<string, string>>> = {
  bwrap: {},
  landlock: { TABERN_SANDBOX: 'landlock' },
  deno: { TABERN_ENGINE: 'deno' },
};

/** The places in which the attack is run. */
export function placesOf(attack: Attack): Place[] {
  const places: Place[] = ['bwrap', 'landlock', 'deno'];
  return places.filter((place) => endingIn(attack, place).type !== 'unrun');
}

export const refused: Ending = { type: 'refused' };
export const ended: Ending = { type: 'ended' };
export const own: Ending = { type: 'own' };
/** It fails for this, and may take its process along. */
export const atMost = (why: RegExp): Ending => ({ type: 'own', why });
export const lost = (why: RegExp): Ending => ({ type: 'lost', why });
export const fails = (why: RegExp): Ending => ({ type: 'fails', why });

export function endingIn(attack: Attack, place: Place): Ending {
  return place === 'bwrap' ? attack.ending : (attack[place] ?? attack.ending);
}

/** What an attack's handler is told. */
export type Aim = {
  /** Of a process of the machine. */
  pid: number;
  /** Files of the service that only it may read. */
  dataDir: string;
  secret: string;
  /** Where the runner keeps what hosts are given. */
  runDir: string;
  /** Where others listen: TCP and UDP of loopback, a unix socket, an abstract one. */
  port: number;
  udpPort: number;
  socket: string;
  abstract: string;
  /** An address of this machine that is not loopback, when it has one. */
  address: string;
  /** The valid key of another project's session. */
  key: string;
};

/** Before every body. */
export const PRELUDE = `
const builtin = (name) => process.getBuiltinModule(name);
const attempt = async (act) => {
  try { return 'yes: ' + String(await act()).slice(0, 200); }
  catch (error) { return 'no: ' + (error?.code ?? error); }
};
const all = async (acts) => Object.fromEntries(await Promise.all(
  Object.entries(acts).map(async ([name, act]) => [name, await attempt(act)])));
/** What the other end says, or an error. */
const talk = (where, say = 'GET / HTTP/1.0\\r\\n\\r\\n') => new Promise((resolve, reject) => {
  const socket = builtin('net').connect(where);
  socket.setTimeout(2500, () => socket.destroy(new Error('silence')));
  socket.on('connect', () => socket.write(say));
  socket.on('data', (bytes) => { resolve(bytes); socket.destroy(); });
  socket.on('error', reject).on('close', () => reject(new Error('closed')));
});
`;

/** What a run of the same bundle must find afterwards. */
export const NEXT = '() => [({}).polluted ?? null, [1].map((x) => x + 1)[0], JSON.stringify([{}])]';
export const UNHARMED = [null, 2, '[{}]'];
