/**
 * The circles of a graph: its strongly connected components of more than one node. Tarjan, SIAM
 * Journal on Computing 1(2), 1972. Pure.
 */

type Visit = { index: number; low: number; isOpen: boolean };

/** Each circle's nodes, sorted. A target that is not a node is ignored. */
export function circlesOf(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const visits = new Map<string, Visit>();
  const open: string[] = [];
  const found: string[][] = [];

  const visit = (node: string): Visit => {
    const own = { index: visits.size, low: visits.size, isOpen: true };
    visits.set(node, own);
    open.push(node);
    for (const target of graph.get(node) ?? []) {
      if (!graph.has(target)) continue;
      const seen = visits.get(target);
      if (seen === undefined) own.low = Math.min(own.low, visit(target).low);
      else if (seen.isOpen) own.low = Math.min(own.low, seen.index);
    }
    if (own.low === own.index) close(node);
    return own;
  };

  const close = (root: string): void => {
    const circle = open.splice(open.indexOf(root));
    for (const node of circle) Object.assign(visits.get(node) ?? {}, { isOpen: false });
    if (circle.length > 1) found.push(circle.sort());
  };

  for (const node of graph.keys()) if (!visits.has(node)) visit(node);
  return found;
}
