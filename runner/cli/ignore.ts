/** Which files of a project are not published: a fixed list, and the rules of .gitignore. Pure. */
import ignore from 'ignore';

/** Secrets, build outputs, and the data of a service that was started in the project. */
const ALWAYS = [
  ...['node_modules/', '.git/', '.browserbase/', '/tabern_data/', '/dist/', '/build/'],
  ...['.env*', '*.log', '.npmrc'],
];

/** Accepts paths relative to the project, with '/' as separator. */
export function ignored(gitignore: string): (path: string, isFolder: boolean) => boolean {
  const options = { ignorecase: false }; // as git on Linux
  const always = ignore(options).add(ALWAYS);
  const own = ignore(options).add(gitignore);
  return (path, isFolder) => {
    const name = isFolder ? `${path}/` : path;
    return always.ignores(name) || own.ignores(name);
  };
}
