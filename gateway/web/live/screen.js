/** Draws the frames, and maps points of the screen to points of the page. */

export function openScreen(canvas) {
  const surface = canvas.getContext('2d', { alpha: false });
  let page = { width: 1_280, height: 800 };
  let drawn = Promise.resolve();

  const draw = async (bytes) => {
    const image = await createImageBitmap(new Blob([bytes], { type: 'image/jpeg' }));
    if (canvas.width !== image.width) canvas.width = image.width;
    if (canvas.height !== image.height) canvas.height = image.height;
    surface.drawImage(image, 0, 0);
    image.close();
  };
  return {
    /** Size of the page, in its own pixels. */
    resize(size) {
      page = size;
    },
    /** Draws frames in order. A frame that cannot be decoded is skipped. */
    draw(bytes) {
      drawn = drawn.then(() => draw(bytes)).catch(() => undefined);
      return drawn;
    },
    /** The point of the page below the event. The frame keeps its aspect ratio. */
    pointOf({ clientX, clientY }) {
      const box = canvas.getBoundingClientRect();
      const scale = Math.min(box.width / page.width, box.height / page.height) || 1;
      const left = box.left + (box.width - page.width * scale) / 2;
      const top = box.top + (box.height - page.height * scale) / 2;
      return {
        x: between((clientX - left) / scale, page.width),
        y: between((clientY - top) / scale, page.height),
      };
    },
  };
}

function between(value, max) {
  return Math.round(Math.min(Math.max(value, 0), max - 1));
}
