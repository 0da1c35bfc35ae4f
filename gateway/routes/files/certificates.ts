/**
 * POST /v1/certificates: an upload of certificates, which core validates. It is small, so it is
 * read whole.
 */
import type { FileRegistry } from '@bufbuild/protobuf';
import type { RouterMiddleware } from '@koa/router';
import { CERTIFICATE_MAX_BYTES } from '../../../proto/common/limits.ts';
import { must } from '../../../proto/common/must.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import { UPLOAD_TIMEOUT_MS } from '../../config.ts';
import type { State } from '../../http/auth.ts';
import { render } from '../../rest/operations.ts';
import { answers, fileBody, json, refer } from '../openapi-parts.ts';
import { openForm } from './multipart.ts';
import type { EnterUpload } from './upload-limits.ts';

export const CERTIFICATES_PATH = '/v1/certificates';
const FILE = { name: 'file', maxBytes: CERTIFICATE_MAX_BYTES } as const;

export function createCertificate(
  clients: Clients,
  registry: FileRegistry,
  enter: EnterUpload,
): RouterMiddleware<State> {
  const name = 'tabern.v1.CreateCertificateResponse';
  const output = must(registry.getMessage(name), name);
  return async (ctx) => {
    const options = must(ctx.state.call, 'a key')(UPLOAD_TIMEOUT_MS);
    using _ = enter(options);
    using form = openForm(ctx.req, { file: FILE });
    const chunks: Buffer[] = [];
    for await (const chunk of form.bytes) chunks.push(chunk);
    const made = await clients.certificates.createCertificate(
      { content: Buffer.concat(chunks) },
      options,
    );
    ctx.body = render(output, made, 'certificate');
  };
}

/** The OpenAPI description of this route. */
export const CERTIFICATES_PATHS = {
  [CERTIFICATES_PATH]: {
    post: {
      operationId: 'createCertificate',
      summary: 'Uploads certificates of authorities, which sessions trust by their id.',
      requestBody: fileBody('1 to 10 certificates in PEM, or one in DER; 64 KiB at most.'),
      responses: answers('The certificate.', json(refer('Certificate'))),
    },
  },
};
