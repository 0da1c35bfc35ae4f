/** The trivial handler of least.ts. */
export default async function run(work: { id: string; paramsJson: string }): Promise<string> {
  return JSON.stringify({ params: JSON.parse(work.paramsJson), invocation: work.id });
}
