/** The element of the player, once it is shown. */
export type Video = { current: HTMLVideoElement | null };
