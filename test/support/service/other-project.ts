/** A second project beside the default one: its key must find no object of the first. */
import { must } from '../../../proto/common/must.ts';
import type { Booted } from '../../core/boot.ts';

/** Adds it to a core; returns its key. */
export async function addProject({
  clients: { operators },
  asOperator,
}: Pick<Booted, 'clients' | 'asOperator'>): Promise<string> {
  await operators.createProject({ name: 'other', limits: {} }, asOperator);
  const { key } = await operators.createApiKey({ project: 'other', name: '' }, asOperator);
  return must(key, 'a key');
}
