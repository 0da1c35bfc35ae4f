/**
 * Text on a terminal. Names, messages and errors of tenants are their code: of control sequences
 * only styles, line breaks and tabs pass, and in a pipe no styles.
 */
import { styleText } from 'node:util';

/** What `util.styleText` takes: it checks for a terminal, NO_COLOR, FORCE_COLOR and TERM. */
export type Stream = NodeJS.WritableStream;
export type Style = Parameters<typeof styleText>[0];

/** Every sequence that selects a style; group 1 has its parameters. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const STYLES = /\u001b\[([\d;]*)m/g;
/** Bold, dim, italic, underlined, and colours. Not hidden, blinking or inverse text. */
const STYLE = '(?:[0-4]|2[2-4]|[34][0-79]|9[0-7]|10[0-7]|[34]8;5;\\d{1,3}|[34]8;2(?:;\\d{1,3}){3})';
const SHOWN = new RegExp(`^${STYLE}(?:;${STYLE})*$`);
/** Each style of a sequence that is shown. */
const PARTS = /[34]8;5;\d+|[34]8;2;\d+;\d+;\d+|\d+/g;
/** Not passed: text in the colour of its background is hidden. */
const BACKGROUND = /^(?:4[0-8]|10\d)/;
const RESET = '\u001b[0m';
/**
 * Control characters, and format characters that are invisible or change the order of the text.
 * Not tabs, and not the joiners of emoji and of Persian.
 */
const UNSHOWN = /[^\P{Cc}\t]|[\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/gu;

/** The text without those characters: for names and messages of one line. */
export function plain(text: unknown): string {
  return String(text).replace(UNSHOWN, '\u{fffd}');
}

/** The text of a tenant with its line breaks, and with its colours where the stream shows them. */
export function tenantText(text: unknown, stream: Stream): string {
  const isColoured = hasColours(stream);
  let end = '';
  const lines = String(text).replaceAll('\r\n', '\n').split('\n');
  const shown = lines.map((line) =>
    line
      .split(STYLES)
      .map((part, index) => {
        if (index % 2 === 0) return plain(part);
        const style = isColoured ? shownStyle(part) : '';
        if (style !== '') end = RESET;
        return style;
      })
      .join(''),
  );
  return shown.join('\n') + end;
}

/** The sequence without backgrounds; empty when the sequence does not pass. */
function shownStyle(parameters: string): string {
  if (parameters === '') return RESET;
  if (!SHOWN.test(parameters)) return '';
  const shown = (parameters.match(PARTS) ?? []).filter((part) => !BACKGROUND.test(part));
  return shown.length === 0 ? '' : `\u001b[${shown.join(';')}m`;
}

/** Our own text in this style, where the stream shows colours. */
export function styled(style: Style, text: string, stream: Stream): string {
  return styleText(style, text, { stream });
}

function hasColours(stream: Stream): boolean {
  return styleText('bold', '', { stream }) !== '';
}
