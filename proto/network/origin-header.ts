/**
 * The header with which a gateway tells a runner the origin of the service as the client of a
 * WebSocket knows it: links in answers begin with it. Pure.
 */
export const ORIGIN_HEADER = 'x-tabern-origin';
