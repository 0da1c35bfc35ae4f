/**
 * Comments of the contract by descriptor: source locations are paths of field numbers in
 * descriptor.proto.
 */
import type { DescField, DescMessage, DescMethod, FileRegistry } from '@bufbuild/protobuf';

/** Numbers of descriptor.proto: FileDescriptorProto.message_type and .service, and so on. */
const FILE_MESSAGE = 4;
const FILE_SERVICE = 6;
const SERVICE_METHOD = 2;
const MESSAGE_FIELD = 2;
const MESSAGE_NESTED = 3;

type Commented = DescField | DescMessage | DescMethod;

/** Returns the comment of a descriptor as one line; empty without one. */
export function commentsOf(registry: FileRegistry): (of: Commented) => string {
  const comments = new Map<Commented, string>();
  for (const file of registry.files) {
    const locations = new Map(
      (file.proto.sourceCodeInfo?.location ?? []).map((one) => [
        one.path.join('.'),
        one.leadingComments.trim().replace(/\s+/g, ' '),
      ]),
    );
    const note = (of: Commented, path: number[]) =>
      comments.set(of, locations.get(path.join('.')) ?? '');
    const walk = (message: DescMessage, path: number[]) => {
      note(message, path);
      for (const [index, field] of message.fields.entries()) {
        note(field, [...path, MESSAGE_FIELD, index]);
      }
      for (const [index, nested] of message.nestedMessages.entries()) {
        walk(nested, [...path, MESSAGE_NESTED, index]);
      }
    };
    for (const [index, message] of file.messages.entries()) walk(message, [FILE_MESSAGE, index]);
    for (const [index, service] of file.services.entries()) {
      for (const [number, method] of service.methods.entries()) {
        note(method, [FILE_SERVICE, index, SERVICE_METHOD, number]);
      }
    }
  }
  return (of) => comments.get(of) ?? '';
}
