// How long the page takes from a slider to the picture, and others: node latency.js
// `PDAWL` is the program (a release build), `CHROMIUM` the browser, `REPEATS` the slider's moves.

import { execFileSync } from 'node:child_process';
import { cpus } from 'node:os';
import { browse, program, serve } from './served.js';

const PROGRAM = program('release');
const REPEATS = Number(process.env.REPEATS ?? 40);
// Those that place kernels one by one.
const POLICIES = ['eager', 'heft', 'locality', 'dmdar', 'partition', 'mhfp', 'darts'];

const { server, address } = await serve(PROGRAM);
const browser = await browse();
const open = async () => (await browser.newContext({ viewport: { width: 1300, height: 900 } })).newPage();
const rank = (all, part) => [...all].sort((a, b) => a - b)[Math.min(all.length - 1, Math.ceil(all.length * part) - 1)];
const say = (what, all) => console.log(`${what}: median ${rank(all, 0.5).toFixed(0)} ms, 95 % ${rank(all, 0.95).toFixed(0)} ms, of ${all.length}`);

console.log(`${execFileSync(PROGRAM, ['--version']).toString().trim()}, ${cpus().length} x ${cpus()[0].model}, Chromium ${browser.version()}, headless`);

// From the begin of the navigation to the first chart's frame.
const first = [];
for (let i = 0; i < 20; i++) {
  const page = await open();
  await page.addInitScript(() => {
    window.drawn = new Promise(done => {
      const look = () => requestAnimationFrame(document.body?.dataset.shown ? () => done(performance.now()) : look);
      look();
    });
  });
  await page.goto(address);
  first.push(await page.evaluate(() => window.drawn));
  await page.context().close();
}
say('first picture', first);

const page = await open();
const moves = [
  ['stencil', 'stencil --machine k40', 'size, slider'],
  ['spmv', 'spmv --machine k40 --matrix uniform:200000,16', 'steps, slider'],
  ['transformer', 'transformer --machine k40', 'beta, slider'],
  ['cholesky 8192', 'cholesky --machine v100x2 --size 8192', 'size, slider'],
  ['the machine (stencil)', 'stencil --machine k40', 'speed'],
];
for (const [name, line, label] of moves) {
  await page.goto(`${address}#run=${line.split(' ').map(encodeURIComponent).join('+')}`);
  await page.waitForFunction(words => document.body.dataset.shown === words, JSON.stringify(line.split(' ')));
  const times = [];
  for (let i = 0; i < REPEATS; i++) {
    const slider = page.getByLabel(label, { exact: true }).first();
    times.push(await slider.evaluate((input, i) => new Promise(done => {
      const began = performance.now(), shown = document.body.dataset.shown;
      // Each move is to a place of its own, so no answer is known before.
      const [min, max] = [Number(input.min), Number(input.max)];
      input.value = String(min + (max - min) * (0.3 + 0.4 * ((i * 0.618034) % 1)));
      input.dispatchEvent(new Event('input', { bubbles: true }));
      const look = () => {
        if (document.body.dataset.shown === shown) requestAnimationFrame(look);
        else requestAnimationFrame(() => done(performance.now() - began));
      };
      requestAnimationFrame(look);
    }), i));
    await page.waitForTimeout(20);
  }
  say(`${name}: from a slider to the picture`, times);
}

// Frames of a chart of many commands, while it is zoomed and moved.
await page.goto(`${address}#run=${'tasks --machine v100x4 --set matmul2d --n 170 --gpu-memory 250MiB --policy eager'.split(' ').join('+')}`);
await page.waitForFunction(() => document.body.dataset.shown?.includes('170'), undefined, { timeout: 60000 });
const [frames, commands] = await page.evaluate(async () => {
  const canvas = document.querySelector('canvas'), times = [];
  for (let i = 0; i < 60; i++) {
    canvas.dispatchEvent(new WheelEvent('wheel', { deltaY: i < 30 ? -100 : 100, ctrlKey: true, cancelable: true }));
    const began = performance.now();
    // The next frame draws, and the one after it has come when that is done.
    await new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)));
    times.push((performance.now() - began) / 2);
  }
  return [times, document.querySelector('#charts p').textContent];
});
say(`a frame of ${commands}`, frames);

// Seven policies beside one another, of Cholesky's 40 x 40 tiles.
const seven = [];
for (let i = 0; i < 5; i++) {
  const words = `cholesky --machine v100x2 --size ${40960 + i} --tile 1024`.split(' ');
  seven.push(await page.evaluate(async ([words, policies]) => {
    const began = performance.now();
    await Promise.all(policies.map(policy => fetch('run', { method: 'POST', body: JSON.stringify({ words: [...words, '--policy', policy] }) }).then(answer => answer.json())));
    return performance.now() - began;
  }, [words, POLICIES]));
}
say(`cholesky of 40 x 40 tiles under ${POLICIES.length} policies`, seven);
await browser.close();
server.kill('SIGINT');
