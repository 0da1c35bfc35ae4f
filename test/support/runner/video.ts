/** Properties of a video, read by ffprobe and ffmpeg, which are independent of the product. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

export type Video = {
  codec: string;
  width: number;
  height: number;
  /** In seconds. */
  duration: number;
  /** As decoded. */
  frames: number;
};

/** Rejects when the file is not a video, or is damaged; `more`: arguments before the path. */
export async function probeVideo(path: string, more: readonly string[] = []): Promise<Video> {
  const entries = 'stream=codec_name,width,height,nb_read_frames:format=duration';
  const { stdout } = await run('ffprobe', [
    ...['-v', 'error', '-count_frames', '-show_entries', entries, '-of', 'json'],
    ...[...more, path],
  ]);
  const { streams, format } = JSON.parse(stdout) as {
    streams: { codec_name: string; width: number; height: number; nb_read_frames: string }[];
    format: { duration: string };
  };
  const [stream] = streams;
  if (stream === undefined) throw new Error('no stream');
  const { codec_name: codec, width, height, nb_read_frames } = stream;
  return {
    codec,
    width,
    height,
    duration: Number(format.duration),
    frames: Number(nb_read_frames),
  };
}

/** Red, green and blue of one pixel at a time in seconds. */
export async function pixelAt(
  path: string,
  seconds: number,
  { x, y }: { x: number; y: number },
): Promise<[number, number, number]> {
  // repeats each frame until the next one, and the last for a minute
  const shown = `tpad=stop_mode=clone:stop_duration=60,fps=20,trim=start=${seconds}`;
  const one = `${shown},crop=2:2:${x}:${y},format=rgb24`;
  const { stdout } = await run(
    'ffmpeg',
    [...['-v', 'error', '-i', path, '-frames:v', '1', '-vf', one], ...['-f', 'rawvideo', '-']],
    { encoding: 'buffer' },
  );
  const [red, green, blue] = stdout;
  if (red === undefined || green === undefined || blue === undefined) throw new Error('no frame');
  return [red, green, blue];
}
