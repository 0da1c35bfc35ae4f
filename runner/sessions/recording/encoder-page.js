/**
 * Runs in a page of the encoder's Chrome, beside mediabunny: JPEG frames in, one segment of a
 * fragmented MP4 out. Every segment has an encoder of its own, begins with a key frame and has the
 * timestamps of its page's video, so segments of one size are simply concatenated.
 */
globalThis.tabernEncoder = (() => {
  const { Mediabunny } = globalThis;
  /** Where a player can seek to. */
  const KEY_FRAME_EVERY_US = 10_000_000;
  /** A frame that lasts longer is repeated as a key frame: a static hour has 4 MB. */
  const REPEAT_EVERY_US = 30_000_000;
  const QUEUE_MAX = 8;
  let job;

  // mediabunny writes its creation time into the start: this is 1904 in MP4, which means unknown.
  // Otherwise the starts of segments made a second apart would differ.
  Date.now = () => -2_082_844_800_000;

  /** `codec`: as WebCodecs names it; times in microseconds from here on. */
  function begin({ width, height, codec, bitrate }) {
    job?.encoder.close();
    const chunks = [];
    const encoder = new VideoEncoder({
      output: (chunk, meta) =>
        chunks.push([Mediabunny.EncodedPacket.fromEncodedChunk(chunk), meta]),
      error: (error) => {
        job.error = error;
      },
    });
    encoder.configure({ codec, width, height, bitrate, avc: { format: 'avc' } });
    const canvas = new OffscreenCanvas(width, height);
    const context = canvas.getContext('2d', { alpha: false });
    job = { width, height, encoder, chunks, canvas, context, lastKey: -Infinity, error: undefined };
  }

  async function add(frames) {
    for (const { jpeg, at, lasts } of frames) {
      const image = await decode(Uint8Array.fromBase64(jpeg));
      const source = fitted(image);
      for (let from = at; from < at + lasts; from += REPEAT_EVERY_US) {
        await encode(source, from, Math.min(REPEAT_EVERY_US, at + lasts - from));
      }
      image.close();
    }
  }

  async function decode(data) {
    const decoder = new ImageDecoder({ data, type: 'image/jpeg' });
    const { image } = await decoder.decode();
    decoder.close();
    return image;
  }

  /** The video's size is fixed: a frame of another size is fitted in, on black. */
  function fitted(image) {
    const { width, height, canvas, context } = job;
    if (image.displayWidth === width && image.displayHeight === height) return image;
    const scale = Math.min(width / image.displayWidth, height / image.displayHeight);
    const [w, h] = [image.displayWidth * scale, image.displayHeight * scale];
    context.clearRect(0, 0, width, height);
    context.drawImage(image, (width - w) / 2, (height - h) / 2, w, h);
    return canvas;
  }

  async function encode(source, timestamp, duration) {
    const { encoder } = job;
    const keyFrame = timestamp - job.lastKey >= KEY_FRAME_EVERY_US;
    if (keyFrame) job.lastKey = timestamp;
    const frame = new VideoFrame(source, { timestamp, duration });
    encoder.encode(frame, { keyFrame });
    frame.close();
    while (encoder.encodeQueueSize > QUEUE_MAX && !job.error) {
      await new Promise((resolve) => encoder.addEventListener('dequeue', resolve, { once: true }));
    }
    if (job.error) throw job.error;
  }

  /** The start of the video and the segment, base64. */
  async function finish() {
    const { encoder, chunks } = job;
    await encoder.flush();
    encoder.close();
    const parts = { start: [], segment: [] };
    const into = (name) => (data) => parts[name].push(data.slice());
    const format = new Mediabunny.Mp4OutputFormat({
      fastStart: 'fragmented',
      minimumFragmentDuration: Number.MAX_SAFE_INTEGER,
      onFtyp: into('start'),
      onMoov: into('start'),
      onMoof: into('segment'),
      onMdat: into('segment'),
    });
    const output = new Mediabunny.Output({ format, target: new Mediabunny.NullTarget() });
    const track = new Mediabunny.EncodedVideoPacketSource('avc');
    output.addVideoTrack(track);
    await output.start();
    for (const [packet, meta] of chunks) await track.add(packet, meta);
    await output.finalize();
    job = undefined;
    return Object.fromEntries(Object.entries(parts).map(([name, all]) => [name, base64(all)]));
  }

  function base64(parts) {
    const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.byteLength, 0));
    let at = 0;
    for (const part of parts) {
      whole.set(part, at);
      at += part.byteLength;
    }
    return whole.toBase64();
  }

  return { begin, add, finish };
})();
