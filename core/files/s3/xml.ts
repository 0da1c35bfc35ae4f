/** Reads the answers of S3: flat XML of a known form, from the server of the operator's choice. */

const ENTITIES: Readonly<Record<string, string>> = {
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&apos;': "'",
  '&amp;': '&',
};

/** The text of the first element of that name; empty when there is none. */
export function textOf(xml: string, name: string): string {
  const start = xml.indexOf(`<${name}>`);
  const end = xml.indexOf(`</${name}>`, start);
  return start < 0 || end < 0 ? '' : decoded(xml.slice(start + name.length + 2, end));
}

/** The content of each element of that name. */
export function elementsOf(xml: string, name: string): string[] {
  const [, ...rest] = xml.split(`<${name}>`);
  return rest.map((text) => text.slice(0, Math.max(0, text.indexOf(`</${name}>`))));
}

export function encoded(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
}

function decoded(text: string): string {
  return text.replace(/&(?:lt|gt|quot|apos|amp);/g, (entity) => ENTITIES[entity] ?? entity);
}
