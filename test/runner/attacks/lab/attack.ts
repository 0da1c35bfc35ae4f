/** The types of an attack and of its expected end. The guide's table is generated from them. */

/** How a contained attack ends. */
export type Ending =
  /** The handler returns the result of each attempt: `no: <why>` for all. */
  | { type: 'refused' }
  /** Its own build fails, with the reason. */
  | { type: 'unbuilt'; why: RegExp }
  /** It is built as if the attack were absent. */
  | { type: 'built' }
  /** Its own run fails, with the reason. */
  | { type: 'fails'; why: RegExp }
  /** Its own project's process ends too, and the run has the reason. */
  | { type: 'lost'; why: RegExp }
  /** It is ended at its time limit. */
  | { type: 'ended' }
  /** It returns this value, without harm. */
  | { type: 'gives'; value: unknown; printed?: (lines: readonly string[]) => boolean }
  /** It may lose its own process, or be ended, and no other's. */
  | { type: 'own'; why?: RegExp }
  /** Not run there: its targets are processes of the service, equal in every sandbox. */
  | { type: 'unrun' }
  /** Not contained, as this text of the guide says. Its body does not run on that launcher. */
  | { type: 'open'; why: string };

export type Attack = {
  /** Its aim, for the table. */
  name: string;
  /** Of an async handler: (ctx, params), with `attempt` and `builtin`. */
  body?: string;
  /** Instead of a body: a whole bundle. */
  source?: string;
  ending: Ending;
  /** A different end under Landlock. */
  landlock?: Ending;
  /** A different end in a host under Deno. */
  deno?: Ending;
  /** Each attempt succeeds without a sandbox, which control.test.ts proves. */
  hasControl?: true;
};

export type Kind = { title: string; attacks: readonly Attack[] };
export type Launcher = 'bwrap' | 'landlock';
/** Node in each launcher's jail; Deno in bwrap's, the only one that supports it. */
export type Place = Launcher | 'deno';
export const PLACES: readonly Place[] = ['bwrap', 'landlock', 'deno'];

/** No harm to another tenant; run on the whole service, in its default sandbox only. */
export const harmless = {
  ending: { type: 'gives', value: undefined },
  landlock: { type: 'unrun' },
  deno: { type: 'unrun' },
} as const satisfies Partial<Attack>;

/** As `harmless`, and run in these places too. */
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

/** The places in which the attack runs. */
export function placesOf(attack: Attack): Place[] {
  return PLACES.filter((place) => endingIn(attack, place).type !== 'unrun');
}

export const refused: Ending = { type: 'refused' };
export const ended: Ending = { type: 'ended' };
export const own: Ending = { type: 'own' };
/** It fails for this reason, and may end its process. */
export const atMost = (why: RegExp): Ending => ({ type: 'own', why });
export const lost = (why: RegExp): Ending => ({ type: 'lost', why });
export const fails = (why: RegExp): Ending => ({ type: 'fails', why });

export function endingIn(attack: Attack, place: Place): Ending {
  return place === 'bwrap' ? attack.ending : (attack[place] ?? attack.ending);
}

/** The params of an attack's handler. */
export type Aim = {
  /** Of a process of the machine. */
  pid: number;
  /** Files of the service that only it may read. */
  dataDir: string;
  secret: string;
  /** The runner's directory of its hosts. */
  runDir: string;
  /** Addresses of other services: TCP and UDP of loopback, a unix socket, an abstract one. */
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
/** The response of the other end, or an error. */
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
