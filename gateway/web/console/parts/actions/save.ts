/** Files that a person saves: of this page, or of an address of this origin. */

/** Ours: a browser has read the file by then. */
const KEPT_MS = 60_000;

/** Saves a file of this page, as a download of the browser. */
export function save(file: Blob, name: string): void {
  const url = URL.createObjectURL(file);
  saveFrom(url, name);
  setTimeout(() => URL.revokeObjectURL(url), KEPT_MS);
}

/** Saves what the address serves; the browser shows the progress. */
export function saveFrom(address: string, name: string): void {
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
}
