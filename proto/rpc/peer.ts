/** The caller's end of a network connection: its address, and the names of its certificate. */
import { checkServerIdentity, type PeerCertificate } from 'node:tls';

export type Peer = {
  /** An IP address; empty when the connection has ended. */
  address: string;
  /** False for a caller that must have a certificate, and whose certificate has another name. */
  mayBe(name: string): boolean;
};

/** The part of a call of grpc-js that is used. */
export type PeerCall = {
  /** `address:port`. */
  getPeer(): string;
  getAuthContext(): { sslPeerCertificate?: PeerCertificate };
};

/** `hasCertificates`: connections without a certificate were refused. */
export function peerOf(call: PeerCall, hasCertificates: boolean): Peer {
  return {
    address: /^(.+):\d+$/.exec(call.getPeer())?.[1] ?? '',
    mayBe(name) {
      if (!hasCertificates) return true;
      const { sslPeerCertificate: certificate } = call.getAuthContext();
      return certificate !== undefined && checkServerIdentity(name, certificate) === undefined;
    },
  };
}
