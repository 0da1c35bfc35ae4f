/** Saves a file of this page, as a download of the browser. */

/** Ours: a browser has read the file by then. */
const KEPT_MS = 60_000;

export function save(file: Blob, name: string): void {
  const url = URL.createObjectURL(file);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), KEPT_MS);
}
