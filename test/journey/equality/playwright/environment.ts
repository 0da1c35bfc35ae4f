/** The environment of a page, as the browser and the driver set it. */
import type { PlaywrightThing } from './place.ts';

const SCREEN = `({
  screen: [screen.width, screen.height, screen.availWidth, screen.availHeight, screen.colorDepth],
  inner: [innerWidth, innerHeight],
  ratio: devicePixelRatio,
  orientation: screen.orientation.type,
})`;
const NAVIGATOR = `({
  userAgent: navigator.userAgent,
  brands: navigator.userAgentData?.brands.map(({ brand }) => brand).sort(),
  platform: navigator.platform,
  languages: navigator.languages,
  vendor: navigator.vendor,
  onLine: navigator.onLine,
  cookieEnabled: navigator.cookieEnabled,
  pdf: navigator.pdfViewerEnabled,
  plugins: [...navigator.plugins].map(({ name }) => name),
  touch: navigator.maxTouchPoints,
  // effectiveType is Chrome's estimate of the network, which a busy machine lowers
  connection: [typeof navigator.connection?.effectiveType, navigator.connection?.saveData],
  hardware: [navigator.hardwareConcurrency, navigator.deviceMemory],
  doNotTrack: navigator.doNotTrack,
  isSecure: isSecureContext,
  isolated: crossOriginIsolated,
  chrome: typeof chrome,
})`;

export const ENVIRONMENT: readonly PlaywrightThing[] = [
  {
    name: 'navigator',
    async run({ page, site }) {
      await page.goto(site.url);
      return await page.evaluate(NAVIGATOR);
    },
  },
  {
    name: 'navigator.webdriver',
    async run({ page, site }) {
      await page.goto(site.url);
      return await page.evaluate('navigator.webdriver');
    },
  },
  {
    name: 'the screen with a viewport of the driver',
    async run({ page }) {
      return await page.evaluate(SCREEN);
    },
  },
  {
    name: 'a phone: viewport, scale, touch, user agent',
    options: {
      viewport: { width: 390, height: 844 },
      deviceScaleFactor: 3,
      isMobile: true,
      hasTouch: true,
      userAgent: 'a phone',
      screen: { width: 390, height: 900 },
    },
    async run({ page, site }) {
      await page.goto(site.url);
      const seen = await page.evaluate(SCREEN);
      await page.setViewportSize({ width: 844, height: 390 });
      return [seen, await page.evaluate('[innerWidth, innerHeight, navigator.userAgent]')];
    },
  },
  {
    name: 'emulated media, colours and motion',
    options: { colorScheme: 'dark', reducedMotion: 'reduce', forcedColors: 'active' },
    async run({ page }) {
      const look = `['(prefers-color-scheme: dark)', '(prefers-reduced-motion: reduce)', '(print)',
        '(forced-colors: active)', '(prefers-contrast: more)', '(hover)', '(pointer: fine)']
        .map((query) => matchMedia(query.replace('(print)', 'print')).matches)`;
      const before = await page.evaluate(look);
      await page.emulateMedia({ media: 'print', colorScheme: 'light', reducedMotion: null });
      return [before, await page.evaluate(look)];
    },
  },
  {
    name: 'locale and timezone',
    options: { locale: 'de-DE', timezoneId: 'Asia/Tokyo' },
    async run({ page, site }) {
      await page.goto(site.url);
      return await page.evaluate(`[navigator.language, (1234.5).toLocaleString(),
        new Date(0).toString(), Intl.DateTimeFormat().resolvedOptions().timeZone]`);
    },
  },
  {
    name: 'the default timezone and locale',
    async run({ page }) {
      return await page.evaluate(`[Intl.DateTimeFormat().resolvedOptions().timeZone,
        (1234.5).toLocaleString(), navigator.language]`);
    },
  },
  {
    name: 'geolocation, granted and not',
    options: { geolocation: { latitude: 1, longitude: 2 }, permissions: ['geolocation'] },
    async run({ context, page, site }) {
      await page.goto(site.other);
      const look = `new Promise((resolve) => navigator.geolocation.getCurrentPosition(
        ({ coords }) => resolve([coords.latitude, coords.longitude]),
        ({ code }) => resolve(code)))`;
      const granted = await page.evaluate(look);
      await context.setGeolocation({ latitude: 3, longitude: 4 });
      const moved = await page.evaluate(look);
      await context.clearPermissions();
      const state = `navigator.permissions.query({ name: 'geolocation' }).then((one) => one.state)`;
      return [granted, moved, await page.evaluate(state)];
    },
  },
  {
    name: 'default and granted permissions',
    async run({ context, page, site }) {
      await page.goto(site.other);
      const names = ['geolocation', 'notifications', 'camera', 'microphone', 'clipboard-read'];
      const look = `Promise.all(${JSON.stringify(names)}.map((name) =>
        navigator.permissions.query({ name }).then((one) => one.state, String)))`;
      const before = await page.evaluate(look);
      await context.grantPermissions(['notifications', 'camera', 'clipboard-read']);
      return [before, await page.evaluate(look), await page.evaluate('Notification.permission')];
    },
  },
  {
    name: 'clipboard',
    options: { permissions: ['clipboard-read', 'clipboard-write'] },
    async run({ page, site }) {
      await page.goto(site.other);
      await page.setContent('<input value="typed"><textarea></textarea>');
      await page.evaluate(`navigator.clipboard.writeText('copied')`);
      const read = await page.evaluate('navigator.clipboard.readText()');
      await page.focus('input');
      await page.keyboard.press('ControlOrMeta+a');
      await page.keyboard.press('ControlOrMeta+c');
      await page.focus('textarea');
      await page.keyboard.press('ControlOrMeta+v');
      return [read, await page.inputValue('textarea')];
    },
  },
  {
    name: 'media: codecs, canvas, WebGL, audio, fonts',
    async run({ page }) {
      return await page.evaluate(`(() => {
        const video = document.createElement('video');
        const canvas = document.createElement('canvas');
        const draw = canvas.getContext('2d');
        draw.fillStyle = 'rgb(1, 2, 3)';
        draw.fillRect(0, 0, 9, 9);
        return {
          types: ['video/webm; codecs=vp9', 'audio/mpeg', 'video/ogg']
            .map((type) => video.canPlayType(type)),
          pixel: [...draw.getImageData(1, 1, 1, 1).data],
          rate: new OfflineAudioContext(1, 1, 44100).sampleRate,
          wasm: typeof WebAssembly.instantiate,
          shared: typeof SharedArrayBuffer,
          generic: document.fonts.check('12px sans-serif'),
        };
      })()`);
    },
  },
  {
    name: 'timers, animation frames and visibility, in a front and a background tab',
    async run({ context, page, site }) {
      await page.goto(site.url);
      const other = await context.newPage();
      await other.goto(`${site.url}/two`);
      const look = `new Promise((resolve) => {
        const from = performance.now();
        requestAnimationFrame(() => setTimeout(() => resolve([document.visibilityState,
          document.hasFocus(), performance.now() - from < 5000]), 20));
      })`;
      return [await page.evaluate(look), await other.evaluate(look)];
    },
  },
  {
    name: 'a fake clock',
    async run({ page, site }) {
      await page.clock.install({ time: 0 });
      await page.goto(site.url);
      await page.clock.pauseAt(10_000);
      await page.evaluate(
        'void (window.fired = 0, setTimeout(() => window.fired = Date.now(), 500))',
      );
      await page.clock.fastForward(1_000);
      return [await page.evaluate('Date.now()'), await page.evaluate('fired > 0')];
    },
  },
];
