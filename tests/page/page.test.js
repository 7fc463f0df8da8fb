// The page of `pdawl ui` in a headless Chromium, against what the program computes in a shell.
// `PDAWL` is the program, `CHROMIUM` the browser.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { after, before, beforeEach, test } from 'node:test';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { browse, program, serve } from './served.js';

const PROGRAM = program('debug');

let server, address, browser, context, page, seen;
/** For what exported commands write. */
const folder = mkdtempSync(join(tmpdir(), 'pdawl-'));

before(async () => {
  ({ server, address } = await serve(PROGRAM));
  browser = await browse();
});

after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true });
  server.kill('SIGINT');
  await new Promise(ended => server.once('exit', ended));
});

/** A page without what other tests left, and what it must not do. */
async function open(options = {}) {
  await context?.close();
  context = await browser.newContext({ viewport: { width: 1300, height: 900 }, ...options });
  page = await context.newPage();
  seen = { requests: [], errors: [] };
  page.on('request', request => seen.requests.push(request.url()));
  page.on('console', message => {
    // What the program refuses in words is no error of the page.
    if (message.type() === 'error' && !/status of 422/.test(message.text())) seen.errors.push(message.text());
  });
  page.on('pageerror', error => seen.errors.push(error.stack));
}

beforeEach(() => open());

/** Nothing came from elsewhere, and nothing went wrong. */
function quiet() {
  const other = seen.requests.filter(url => !url.startsWith(address.split('#')[0]) && !/^(data|blob):/.test(url));
  assert.deepEqual(other, []);
  assert.deepEqual(seen.errors, []);
}

/** Waits until what is shown is the run of the controls. */
async function settled() {
  await page.waitForFunction(() => {
    const shown = document.body.dataset.shown;
    const given = new Map(location.hash.slice(1).split('&').map(part => part.split('=', 2)));
    const run = location.hash.replace(/^#run=/, '').split('&')[0].split('+').map(decodeURIComponent);
    return given.size && shown === JSON.stringify(run);
  }, undefined, { timeout: 20000 });
}

async function show(line) {
  await page.goto(address + (line ? `#run=${line.split(' ').map(encodeURIComponent).join('+')}` : ''));
  await page.waitForFunction(() => document.body.dataset.shown, undefined, { timeout: 20000 });
  if (line) await settled();
}

/** A report without the times that the program itself took. */
function simulated(report) {
  return JSON.parse(JSON.stringify(report, (key, value) =>
    /^(setup_seconds|deciding_seconds|engine_seconds|driver_seconds)$/.test(key) ? null : value));
}

/** What the exported command prints, in a shell. */
async function commanded() {
  const command = (await page.textContent('#command')).replace(/^pdawl/, PROGRAM);
  return JSON.parse(execFileSync('sh', ['-c', `${command} --format json`], { maxBuffer: 1 << 28, cwd: folder }).toString());
}

const seconds = async () => Number(await page.evaluate(() => document.body.dataset.seconds));

test('a first visit shows a case, and its command gives the same run', async () => {
  await show();
  assert.match(await page.textContent('header'), /simulates a run.*the chart shows what would be.*Every time is simulated/s);
  const report = await commanded();
  assert.equal(await seconds(), report.seconds);
  assert.ok(report.seconds > 0);
  quiet();
});

test('sliders, policies and the machine change the run as the command says', async () => {
  await show('cholesky --machine v100x2 --size 8192');
  const first = await seconds();
  await page.getByLabel('size, slider').press('ArrowRight');
  await settled();
  await page.getByLabel('policy', { exact: true }).selectOption('heft');
  await settled();
  const slider = page.locator('fieldset', { hasText: 'host cores' }).getByLabel('speed', { exact: true }).first();
  for (let i = 0; i < 4; i++) await slider.press('ArrowRight');
  await settled();
  assert.match(await page.textContent('#command'), /v100x2,gpu0\.speed=2x.*--policy heft/);
  assert.notEqual(await seconds(), first);
  const report = await commanded();
  assert.equal(await seconds(), report.seconds);
  assert.equal(report.policy, 'heft');
  quiet();
});

test('devices are taken out and added, and faults given', async () => {
  await show('stencil --machine v100x2 --size 2000 --steps 20');
  await page.getByLabel('gpu1 takes part').uncheck();
  await settled();
  await page.getByLabel('add a device like gpu0').click();
  await settled();
  await page.getByLabel('device', { exact: true }).selectOption('gpu0');
  await page.getByLabel('what happens').selectOption('lost');
  await page.getByLabel('at which step, or time such as 0.001s').fill('7');
  await page.getByLabel('add a fault').click();
  await settled();
  const report = await commanded();
  assert.deepEqual(report.machine.devices.map(device => device.name), ['host', 'gpu0', 'gpu2']);
  assert.equal(report.lost[0].device, 'gpu0');
  assert.equal(await seconds(), report.seconds);
  quiet();
});

test('policies are compared, and one of them is shown', async () => {
  await show('tasks --machine v100x2 --set matmul2d --n 12 --gpu-memory 250MiB');
  await page.waitForFunction(() => document.body.dataset.compared);
  await page.getByRole('button', { name: 'run each of them' }).click();
  await page.waitForFunction(() => Number(document.body.dataset.policies) === 11);
  const rows = await page.locator('#compare table').last().locator('tr').allTextContents();
  assert.equal(rows.length, 12);
  await page.getByRole('button', { name: 'show eager' }).click();
  await settled();
  assert.equal((await commanded()).policy, 'eager');
  assert.equal(await page.getByLabel('policy', { exact: true }).inputValue(), 'eager');
  quiet();
});

test('a sweep finds where the answer changes', async () => {
  await show('stencil --machine k40 --strategy dawl --size 4096 --steps 20');
  await page.waitForFunction(() => document.body.dataset.compared);
  await page.getByLabel('what is varied').selectOption('size');
  await page.getByLabel('from', { exact: true }).fill('64');
  await page.getByLabel('to', { exact: true }).fill('4096');
  await page.getByLabel('compared with').selectOption('gpu0 alone');
  await page.getByLabel('run the sweep').click();
  await page.waitForFunction(() => document.body.dataset.swept !== undefined, undefined, { timeout: 30000 });
  const flip = Number(await page.evaluate(() => document.body.dataset.swept));
  assert.ok(flip > 64 && flip < 4096, `${flip}`);
  const at = (size, devices) => JSON.parse(execFileSync(PROGRAM, `run stencil --machine k40 --size ${size} --steps 20 --format json ${devices}`.split(' '))).seconds;
  assert.ok(at(flip, '--strategy dawl') < at(flip, '--devices gpu0'), 'from there on both are faster');
  quiet();
});

test('two runs are on one axis, and all of the state is in the address', async () => {
  await show('lu --machine v100x2 --size 4096');
  await page.getByRole('button', { name: 'compare the next changes with this run' }).click();
  await page.getByLabel('policy', { exact: true }).selectOption('eager');
  await settled();
  await page.waitForFunction(() => document.querySelectorAll('#charts canvas').length === 2);
  const titles = await page.locator('#charts h2').allTextContents();
  assert.match(titles[0], /eager on v100x2/);
  assert.match(titles[1], /beside: .*locality on v100x2/);
  const there = page.url(), time = await seconds();
  await open();
  await page.goto(there);
  await page.waitForFunction(() => document.querySelectorAll('#charts canvas').length === 2);
  assert.equal(await seconds(), time);
  const tab = await context.newPage();
  await tab.goto(there);
  await tab.waitForFunction(() => document.querySelectorAll('#charts canvas').length === 2);
  await tab.close();
  await page.reload();
  await page.waitForFunction(() => document.querySelectorAll('#charts canvas').length === 2);
  quiet();
});

test('a command of the chart is reached by keys and read out', async () => {
  await show('cholesky --machine v100x2 --size 4096');
  await page.locator('canvas').first().focus();
  await page.keyboard.press('ArrowDown');
  for (let i = 0; i < 3; i++) await page.keyboard.press('ArrowRight');
  assert.match(await page.locator('.said').first().textContent(), /step \d+, units .*after a wait of/s);
  await page.keyboard.press('+');
  await page.keyboard.press('0');
  quiet();
});

test('what the program refuses is said in its words', async () => {
  await page.goto(`${address}#run=stencil+--machine+k40+--steps+none`);
  await page.waitForFunction(() => document.body.dataset.shown);
  assert.match(await page.textContent('#trouble'), /--steps/);
  await page.goto(`${address}#run=nothing`);
  await page.waitForFunction(() => document.body.dataset.shown?.includes('nothing'));
  assert.match(await page.textContent('#trouble'), /nothing/);
  await page.getByLabel('workload').selectOption('spmv');
  await settled();
  assert.equal(await seconds(), (await commanded()).seconds);
  quiet();
});

test('a run that takes long is left when another one is asked for', async () => {
  const left = [];
  page.on('requestfailed', request => left.push(request.postData() ?? ''));
  await page.goto(`${address}#run=${'matmul --machine v100x4 --size 200000'.split(' ').join('+')}`);
  await page.getByLabel('size', { exact: true }).waitFor();
  await page.waitForTimeout(500);
  await page.getByLabel('size', { exact: true }).fill('4096');
  await page.getByLabel('size', { exact: true }).press('Enter');
  await settled();
  assert.match(left.join(), /200000/);
  assert.ok((await commanded()).command.includes('4096'));
  quiet();
});

test('a chart has the colours of the scheme, and follows it', async () => {
  const colours = () => page.locator('#charts li i').evaluateAll(all => all.map(one => one.style.getPropertyValue('--colour')));
  await show('');
  const light = await colours();
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.waitForFunction(light => [...document.querySelectorAll('#charts li i')].some((one, i) =>
    one.style.getPropertyValue('--colour') !== light[i]), light);
  await page.emulateMedia({ colorScheme: 'light' });
  await page.waitForFunction(light => [...document.querySelectorAll('#charts li i')].every((one, i) =>
    one.style.getPropertyValue('--colour') === light[i]), light);
  quiet();
});

test('no text is cut off or covered, wide, narrow and dark', async () => {
  for (const [width, colorScheme] of [[1300, 'light'], [1300, 'dark'], [380, 'light'], [380, 'dark']]) {
    await open({ viewport: { width, height: 900 }, colorScheme });
    for (const line of ['cholesky --machine v100x2 --size 4096', 'stencil --machine v100x7 --steps 30', 'lu --cluster four --size 4096']) {
      await show(line);
      await page.waitForFunction(() => document.body.dataset.compared === document.body.dataset.shown);
      await page.evaluate(() => document.querySelectorAll('details').forEach(details => { details.open = true; }));
      const wrong = await page.evaluate(() => {
        const found = [];
        const root = document.documentElement;
        if (root.scrollWidth > root.clientWidth) found.push(`the page is ${root.scrollWidth} wide`);
        for (const node of document.querySelectorAll('body *')) {
          const own = [...node.childNodes].some(child => child.nodeType === 3 && child.textContent.trim());
          if (!own || node.closest('.said, option, script, [hidden]')) continue;
          const words = node.textContent.trim().slice(0, 40);
          if (node.scrollWidth > node.clientWidth + 1 && getComputedStyle(node).overflowX !== 'visible' && node.clientWidth) found.push(`cut off: ${words}`);
          // The words of a table's first column are on its left.
          node.scrollIntoView({ block: 'center', inline: node.cellIndex === 0 ? 'start' : 'center' });
          const range = document.createRange();
          range.selectNodeContents(node);
          const box = range.getClientRects()[0];
          if (!box || !box.width) continue;
          const at = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
          if (!at || !(node.contains(at) || at.contains(node))) found.push(`covered: ${words} by ${at?.tagName} ${at?.textContent.slice(0, 30)} at ${JSON.stringify(box)}`);
        }
        return found;
      });
      assert.deepEqual(wrong, [], `${width} ${colorScheme} ${line}`);
    }
    quiet();
  }
});

/** Another server, with what it prints first that has an address. */
async function other(words, stream) {
  // Where there is no PATH, no browser is opened.
  const child = spawn(PROGRAM, words, { stdio: ['ignore', 'pipe', 'pipe'], cwd: folder, env: { ...process.env, PATH: '' } });
  let text = '';
  const there = await new Promise(found => child[stream].on('data', part => {
    text += part;
    const match = /http:\/\/127\.0\.0\.1:\d+\/\w+\/(#watch)?/.exec(text);
    if (match) found(match[0]);
  }));
  return { child, there, text: () => text, ended: new Promise(end => child.once('exit', end)) };
}

test('a run is shown while it goes on, and stays until Ctrl-C', async () => {
  const run = await other('run stencil --size 1500 --steps 1500 --devices host:1 --watch --trace watched.json'.split(' '), 'stderr');
  await page.goto(run.there);
  await page.waitForSelector('progress');
  await page.waitForFunction(() => /\d+ of 1500/.test(document.querySelector('#headline')?.textContent ?? ''));
  await page.waitForFunction(() => document.querySelector('#made table'), undefined, { timeout: 60000 });
  assert.match(await page.textContent('#headline'), /stencil 1500 x 1500 f64, \w+, measured/);
  assert.match(await page.textContent('#charts h2'), /measured/);
  assert.match(await page.textContent('#figures'), /Shares over steps.*Seconds of steps/s);
  assert.deepEqual(seen.errors, []);
  run.child.kill('SIGINT');
  assert.equal(await run.ended, 0);
  assert.ok(existsSync(join(folder, 'watched.json')));
});

test('runs that were made are shown beside what the simulator says', async () => {
  const run = (line) => execFileSync(PROGRAM, line.split(' '), { cwd: folder });
  run('run cholesky --machine v100x2 --size 4096 --policy dmdar --trace made.json');
  writeFileSync(join(folder, 'report.json'), run('run stencil --size 300 --steps 5 --devices host:1 --format json'));
  const files = await other(['ui', '--no-open', 'made.json', 'report.json'], 'stdout');
  await page.goto(files.there);
  await page.waitForFunction(() => document.querySelectorAll('#charts canvas').length === 2);
  const made = JSON.parse(run('run cholesky --machine v100x2 --size 4096 --policy dmdar --format json'));
  assert.equal(await seconds(), made.seconds);
  assert.match(await page.locator('#charts h2').last().textContent(), /made: .*dmdar on v100x2/);
  await page.getByLabel('policy', { exact: true }).selectOption('locality');
  await settled();
  assert.notEqual(await seconds(), made.seconds);
  await page.getByRole('button', { name: 'show report.json' }).click();
  await page.waitForFunction(() => document.querySelector('#headline').textContent.includes('measured'));
  await page.getByRole('button', { name: 'what it would be on' }).click();
  await settled();
  assert.match(await page.textContent('#headline'), /stencil 300 x 300 f64, \w+, simulated/);
  assert.deepEqual(seen.errors, []);
  files.child.kill('SIGTERM');
  await files.ended;
});

test('a recording of StarPU is a case', async () => {
  await show(`dag --starpu ${resolve('../../datasets/starpu/cholesky')} --policy recorded`);
  assert.match(await page.textContent('#charts h2'), /StarPU's recording cholesky, recorded on/);
  assert.ok(Math.abs(await seconds() / 1.322138 - 1) < 0.05);
  await page.getByRole('button', { name: 'compare the next changes with this run' }).click();
  await page.getByLabel('policy', { exact: true }).selectOption('locality');
  await settled();
  await page.waitForFunction(() => document.querySelectorAll('#charts canvas').length === 2);
  assert.equal(await seconds(), (await commanded()).seconds);
  quiet();
});

/** Numbers from 0 to 1, the same in every run. */
function random(seed) {
  let state = seed;
  return () => {
    state = (state * 1664525 + 1013904223) % 2 ** 32;
    return state / 2 ** 32;
  };
}

test('forty random states are what their commands say', async () => {
  const next = random(57), one = list => list[Math.floor(next() * list.length)];
  const size = () => String(2 ** (8 + Math.floor(next() * 5)) + Math.floor(next() * 9));
  const strategy = () => ['--strategy', one(['cpu', 'gpu', 'fixed:0.3', 'guided', 'dawl', 'pdawl', 'oracle'])];
  const policy = () => ['--policy', one(['adaptive', 'clustering', 'auto-fit', 'round-robin', 'eager', 'heft', 'locality', 'dmdar', 'partition', 'mhfp', 'darts', 'darts+luf'])];
  const workloads = {
    stencil: () => ['--size', size(), '--steps', one(['5', '20']), ...strategy()],
    spmv: () => ['--matrix', one(['uniform:20000,10', 'rmat:12,8', 'banded:50000,8']), ...strategy()],
    pagerank: () => ['--matrix', 'rmat:12,8', '--steps', '10', ...strategy()],
    transformer: () => ['--heads', one(['2', '4', '8']), '--beta', one(['64', '128']), ...policy()],
    matmul: () => ['--size', size(), ...policy()],
    cholesky: () => ['--size', size(), ...policy()],
    lu: () => ['--size', size(), ...policy()],
    fft: () => ['--size', one(['512', '1024']), ...policy()],
    convolution: () => ['--size', size(), '--filter', one(['3', '7']), ...policy()],
    tasks: () => ['--set', one(['matmul2d', 'cholesky', 'sparse']), '--n', one(['6', '13']), ...policy()],
  };
  const changes = () => one(['', '', ',gpu0.speed=2x', ',gpu0.link=0.25x,host.cores=2', ',gpu9=gpu0', ',host.memory_bandwidth=0.5x,host.core_bandwidth=0.5x']);
  let refused = 0;
  for (let i = 0; i < 40; i++) {
    const workload = one(Object.keys(workloads));
    const cluster = next() < 0.15 && ['stencil', 'matmul', 'lu', 'fft'].includes(workload);
    const place = cluster ? ['--cluster', 'four', '--nodes', one(['2', '3', '4'])] : ['--machine', one(['k40', 'titan', 'v100x2', 'v100x4']) + changes()];
    const given = workloads[workload](), noise = next() < 0.3 ? ['--noise', '0.05', '--seed', String(i)] : [];
    const at = given.findIndex(word => word === '--strategy' || word === '--policy');
    const words = [workload, ...place, ...(cluster && at >= 0 ? given.slice(0, at) : given), ...noise];
    const answer = page.waitForResponse(response => response.url().endsWith('/run') && response.request().postDataJSON().chart
      && JSON.stringify(response.request().postDataJSON().words.slice().sort()) === JSON.stringify(words.slice().sort()));
    await page.goto(`${address}#run=${words.map(encodeURIComponent).join('+')}`);
    const response = await answer, came = await response.json();
    await page.waitForFunction(words => document.body.dataset.shown && JSON.stringify(JSON.parse(document.body.dataset.shown).sort()) === JSON.stringify(words.sort()), words);
    if (response.status() === 422) {
      refused++;
      assert.equal(await page.textContent('#trouble'), came.error);
      const again = (await import('node:child_process')).spawnSync(PROGRAM, ['run', ...words, '--format', 'json']);
      assert.notEqual(again.status, 0, words.join(' '));
      continue;
    }
    assert.deepEqual(simulated(came.report), simulated(await commanded()), words.join(' '));
    assert.equal(await seconds(), came.report.seconds);
  }
  assert.ok(refused <= 8, `${refused} of 40 states were refused`);
  quiet();
});
