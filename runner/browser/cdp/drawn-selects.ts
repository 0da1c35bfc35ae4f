/**
 * `enableNativeSelectPolyfill`: the list of an open <select> is drawn by the page. Chrome's own one
 * is a window of its own, which no screencast contains.
 */
import type { Page, Pages } from './pages.ts';

/** A style of the document that scripts of the page can replace; not of shadow trees. */
const STYLE = `:is(select:not([multiple], [size])), select:not([multiple], [size])::picker(select) {
  appearance: base-select;
}`;
const SOURCE = `{
  const style = new CSSStyleSheet();
  style.replaceSync(${JSON.stringify(STYLE)});
  document.adoptedStyleSheets.push(style);
}`;

/** Rejects when the open pages cannot be prepared. Frames of other sites keep Chrome's list. */
export async function drawSelects(pages: Pages): Promise<void> {
  await pages.prepare(prepare);
}

async function prepare({ session }: Page): Promise<void> {
  const script = { source: SOURCE, runImmediately: true };
  // Chrome runs such scripts of sessions with this domain only
  await Promise.all([
    session.call('Page.enable'),
    session.call('Page.addScriptToEvaluateOnNewDocument', script),
  ]);
}
