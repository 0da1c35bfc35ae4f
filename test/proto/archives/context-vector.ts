/**
 * The test vector of layout version 1 (proto/README.md): a file, the private key that unwraps its
 * keys, and its content. Implementations of the layout in other languages are tested with it. The
 * key is used nowhere else.
 */

export const VECTOR_PRIVATE_KEY = `-----BEGIN PRIVATE KEY-----
MIIEvAIBADANBgkqhkiG9w0BAQEFAASCBKYwggSiAgEAAoIBAQCXsJBfcejWH2TB
/pddzjkIAD7hNEc/YcOSQI/5g9IIudRAxYbzMASUID8FrsUBxUNngGW4X0WDxORy
HHaxxeaXjSC1ML2eb25ApHHoSxK31T/hK9DDyFzS5V+dsDYIuOhY0+42l+a/twnj
4tQmz8jL6ejxqWBRLutvRaRqHzkxSwgMRQZJnfOvkMSxkzn19V3OlVAoO1jwtIlm
myiODp3dtg1UEdGbaOtroxSWO8rdd/yf0/H2RQkNhEI9tMGy2HId6APX4/YQIou3
K6GriwGwALQwN6+Wa4vU57Br/QPCGi2DroHCT3E7gzyP0UYl2EXoPVAslc/BQz0H
OypRZ4MdAgMBAAECggEAA/kTZvSQUR9kX7Jf24ydsMh03Sgl35KbcTawrqvVsfXQ
CdxCkxcEX67Sh78SmN/GSq0xvNj99JwREa4OK8zPo9OF8kjzBnXLsPS9qQRiWp9C
u46OuroCOGHalcI6QBM7vqvaVuK2n/nWz/mubc/OZgzb1YyGocm1T+ZGjqL/t/tB
QesrS3Z/VxduuKG3I56g6qNZT3DuzVNoOb0QjWHvlDxV8p9pWDeL8FjRaTIwaNhk
yvrnm/Dwk5eV9jOW0f3rkcCNdBU9oc+m9GsipmGBgckvFRbVq72bXQ/qqvR2J2ra
3xeCm7nc6t7UCb2s1gmo9Y25K+6Qofl8pRURZc/qfwKBgQDUrFgBl3RlyIKa10M3
Ph3QBO5OGUYmdMuy9f7nB8zTM+oNobyWM5MgsrHlZMdqZLzt8PAdhxOngjk8Bn1t
PsHC0sSZYMgwaY8WLDr2W5iUZgLRHUxwn7LrGuMkPsp+5YLMpPIe4rcOKvCy7d1J
SyqpUL7hboRwcQploRdxG/RuSwKBgQC2l7clj9D+fZJ6rW4+68cRg4REFaID1seS
Vd7z+qm/me0UqDZdY/lDnejLRE5UiQQwtMBlRd+mN/lJgoZL8Lv/gWhJyIKlpvsl
l8C10wS2n2u/r9PKxZzMLQm7sm9tPa46eWmVUoMwBhiN33Ea8uoDnbsGUiEY1qeP
gLq7PXTTNwKBgD5MliMxOLmwOQIe2OPP4G/VYfGi2bfeMuWjxh3rXQbpiECiBlqB
lTHY5t/p27jA9c9F6zDbJtjE/vskc42S+rOVhl3fygTUh0PZhRQx1Mpz75NOX9wG
DCVu5ObzNeJiXSSRlROTGkieL5BauZ4E1ORwcNocw9MkagVHYVSS+dFtAoGAdwtj
NPIW6FUmcyUvg4ZlO13rlhgkkSwu4ZFq0tbSZUEN+THSgAD2OsdxR1U5XJQYT0kJ
Rv3PWqeTuAGJXWmOqH7OZ4x64VWE2HWgBuuVXxuBPHB+PO2p1NRoTB+B1k8okKcn
11r8fQr8Z0MOkutc9w6XKP/S5EbO6BidpgXjbPECgYAM7D7R3/fqvIlxOnsHIDsd
e6qEMdyhzAxE8ZAWy9g1jfQeDA/a/5QMX231dJBQZdlEP83ZiIb/MjmXn0TlvGNB
L2L4ESOQk2xptv+0CrY/o+ebxgEkTRVsgmaePloosYjp3yYX60Zr9MdGmYvO4WcM
xJPmotfC7bXwJ/2170C3NA==
-----END PRIVATE KEY-----
`;

/** In base64. */
export const VECTOR = `
VEJDWAEBAGYYoFLjPwXBjHe8ZgkAIiUomvE8DjFtTU5F45o01kBiuBiWwapCKrlfjYy//GJIcA9LJMmZ45FpEqV7imKA
jzq97qv4g9CPpPkp43ocqnBDNaHVLmz2SwODgeXd5DR6hhLzNHxUBd6367VZ97Vix39FbRH7xB48SECKmYkl3Ke3Y72p
afc3SNDws1WLlW4Lv0xVhcs+aERqcxjgAZWLtvs3y/n7Ae2wwJQe8fCjBek87x+GGkFs416bU+V1MKVe8Sc19szYkGLW
b/yz05ckd0qodV7Lsl6zcaamAjySb60KHgip1dLU+B3/y6YMTZPWhrgYdxJX8SbjVnq7IaGH1EkMmoQ2lnWv4sSOUK9J
HOviiJRf+2aZ9wgY0EHVZMLZLNJoqZsyf4gSWimMirM62TwOMJHal2lSVGpM8bB7kq9wjKm36hT0NZVGfd4Resl9P9nV
hPDsGAb7V+5B6rReygPp09jqv+zqX14mT86MyfyEz7gxHfDTL3GbdvpLP7YrjNT7Hkdl1mfH65CJSpX2eWFMpEVt5Qlu
MuNW6ErHzToz`;

/** Mode is the archive's; unpacked it is 0700 and 0600. */
export const VECTOR_ENTRIES = [
  { kind: 'directory', path: 'Default', mode: 0o700, text: '' },
  { kind: 'file', path: 'Default/Preferences', mode: 0o600, text: '{"a":1}' },
] as const;
