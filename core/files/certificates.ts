/**
 * Certificates of authorities that the browsers of sessions trust, in addition to the public ones.
 * active -> deleted, once; open sessions with a deleted one still trust it. An upload that is no
 * certificate of an authority, or an expired one, is refused with the reason.
 */
import { CERTIFICATE_MAX_BYTES } from '../../proto/common/limits.ts';
import type {
  Certificate,
  CertificateServiceService,
} from '../../proto/gen/tabern/v1/extensions.pb.ts';
import { Fault, invalidField } from '../../proto/rpc/errors.ts';
import { resourceOf } from '../api/answers.ts';
import { inRange, orNotFound } from '../api/checks.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import { isId, newId } from '../common/ids.ts';
import type { CertificateRow } from '../store/types/files.ts';
import type { Store } from '../store/types.ts';
import type { Validator } from '../validation/validator.ts';

/** Of a project. Source: extensions.proto. */
const CERTIFICATES_MAX = 100;
/** Of a project, until retention removes them. Ours: they are 20 MB at most. */
const DELETED_MAX = 300;
const MAX = { count: CERTIFICATES_MAX, deleted: DELETED_MAX };
const SIZE = { min: 1, max: CERTIFICATE_MAX_BYTES, unit: ' bytes' };
const PEM = /-----BEGIN CERTIFICATE-----([^-]+)-----END CERTIFICATE-----/g;

type Options = { store: Store; validator: Validator; now: () => number };

export function certificateService({
  store,
  validator,
  now,
}: Options): Service<typeof CertificateServiceService, ProjectCaller> {
  return {
    async createCertificate({ content }, { projectId }) {
      inRange('file', content.length, SIZE);
      const read = await validator.certificates(projectId, content, now());
      if ('problem' in read) throw invalidField('file', read.problem);
      const wanted = { id: newId(), projectId, pem: read.pem, at: now() };
      const made = await store.createCertificate(wanted, MAX);
      if (made === 'full') throw tooMany(CERTIFICATES_MAX);
      if (made === 'full-of-deleted') throw tooManyDeleted(DELETED_MAX);
      return { certificate: toProto(made) };
    },

    // As an extension's, the id is a plain string in the interface.
    async getCertificate({ id }, { projectId }) {
      const own = { id: id.toLowerCase(), projectId };
      const row = isId(id) ? await store.getCertificate(own) : undefined;
      return { certificate: toProto(orNotFound(row, 'Certificate', id)) };
    },

    async listCertificates(_, { projectId }) {
      const rows = await store.listCertificates({ projectId, max: CERTIFICATES_MAX });
      return { certificates: rows.map(toProto) };
    },

    async deleteCertificate({ id }, { projectId }) {
      const own = { id: id.toLowerCase(), projectId, at: now() };
      const isDeleted = isId(id) && (await store.deleteCertificate(own));
      orNotFound(isDeleted || undefined, 'Certificate', id);
      return {};
    },
  };
}

/** The certificates of a stored PEM in DER. */
export function certificatesOf(pem: string): Buffer[] {
  return [...pem.matchAll(PEM)].map(([, base64 = '']) => Buffer.from(base64, 'base64'));
}

function tooMany(limit: number): Fault {
  const message = `A project has at most ${limit} certificates. Delete one first.`;
  return new Fault('TOO_MANY_CERTIFICATES', message, { limit });
}

function tooManyDeleted(limit: number): Fault {
  const which = `${limit} deleted certificates of this project, which open sessions may trust,`;
  const message = `${which} are not removed yet. Retry in a minute.`;
  return new Fault('TOO_MANY_CERTIFICATES', message, { limit });
}

function toProto(row: CertificateRow): Certificate {
  return resourceOf(row);
}
