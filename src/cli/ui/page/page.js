// @ts-check
// The page: asks the program for runs as the user changes them, and shows what it answers.

import { Form, button } from './form.js';
import { elsewhere, list, simulated, watch } from './made.js';
import { FIRST, address, ask, changed, fromAddress, offered, parse, python, shell, words } from './state.js';
import { COLOURS, curves, headline, reasons, shares, table, time, uses } from './views.js';

const part = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
/** How long nothing may change before other runs are compared, in milliseconds. */
const REST = 250;

/** The newest answers of runs, by their words, or what is to be one. @type {Map<string, any>} */
const known = new Map();
// The first picture waits for as little as there is: its run needs no catalogue.
const first = fromAddress(location.hash).run, opening = first.length || location.hash ? first : FIRST;
const opened = new AbortController();
if (opening.length) {
  const key = JSON.stringify([opening, true]), early = ask('run', { words: opening, chart: true }, opened.signal);
  known.set(key, early);
  early.catch(() => known.delete(key));
}
/** @type {[import('./state.js').Catalogue, import('./made.js').Made[]]} */
const [catalogue, made] = await Promise.all([ask('catalogue', undefined), ask('files', undefined)]);
const charts = new Charts(part('charts'));
const form = new Form(part('form'), catalogue, run => begin(run));
/** The words beside which the run is shown, if any; `file` and a number for a run that was made.
 * @type {string[]} */
let beside = [];
/** @type {import('./state.js').Run} */
let run = parse([], catalogue);
/** Ends what is compared with a run that is shown no longer. */
let comparing = new AbortController();
/** @type {number | undefined} */
let rests;

/** The answer of a run. @param {string[]} of @param {boolean} chart @param {AbortSignal} [signal] */
async function answer(of, chart, signal) {
  if (of[0] === 'file') return made[Number(of[1])] ?? Promise.reject(new Error('the page was not given this file'));
  const key = JSON.stringify([of, chart]);
  const found = known.get(key) ?? known.get(JSON.stringify([of, true]));
  if (found) return found;
  const came = await ask('run', { words: of, chart }, signal);
  known.set(key, came);
  if (known.size > 300) known.delete(known.keys().next().value ?? '');
  return came;
}

/** The report that is shown. @type {any} */
let present = { machine: { devices: [] } };
/** The run that is asked for, and the one that is to follow it. @type {any} */
let asked = null;
let again = false;

/** Shows another run. @param {import('./state.js').Run} next */
function begin(next) {
  run = next;
  history.replaceState(null, '', address(words(run), beside));
  comparing.abort();
  clearTimeout(rests);
  for (const id of ['compare', 'sweep']) part(id).classList.add('stale');
  show();
}

/** Asks for the present run, once: what changes meanwhile is asked for afterwards. */
async function show() {
  if (asked) {
    again = true;
    // One that takes long is not waited for.
    if (performance.now() - asked.since > 400) for (const one of [asked.ends, opened]) one.abort();
    return;
  }
  asked = { since: performance.now(), ends: new AbortController() };
  const of = words(run), busy = setTimeout(() => part('charts').classList.add('stale'), 200);
  try {
    const { signal } = asked.ends;
    const [came, other] = await Promise.all([answer(of, true, signal), beside.length ? answer(beside, true, signal) : null]);
    if (!again) shown(of, came, other);
  } catch (error) {
    if (!(error instanceof DOMException)) trouble(/** @type {Error} */ (error).message);
  } finally {
    clearTimeout(busy);
    asked = null;
  }
  if (again) {
    again = false;
    show();
  }
}

/** @param {string} why */
function trouble(why) {
  part('trouble').hidden = false;
  part('trouble').textContent = why;
  for (const id of ['headline', 'charts']) part(id).classList.add('stale');
  document.body.dataset.shown = JSON.stringify(words(run));
}

/** @param {string[]} of @param {any} came @param {any} other */
function shown(of, came, other) {
  part('trouble').hidden = true;
  for (const id of ['headline', 'charts']) part(id).classList.remove('stale');
  present = came.report;
  headline(part('headline'), present, []);
  charts.show(other?.chart ? together(came.chart, other.chart) : came.chart);
  part('made').replaceChildren(...(made.length ? [list(made, beside[0] === 'file' ? Number(beside[1]) : -1, given)] : []));
  part('figures').replaceChildren(reasons(came.report, came.chart), ...shares(came.report), ...uses(came.chart));
  exported(of);
  document.body.dataset.shown = JSON.stringify(of);
  document.body.dataset.seconds = String(came.report.seconds);
  rests = window.setTimeout(() => compare(came), REST);
}

/** Two runs on one time axis, with one palette. @param {any} one @param {any} two */
function together(one, two) {
  const palette = [...one.palette];
  const entry = two.palette.map((/** @type {any} */ of) => {
    const same = palette.findIndex(known => known.name === of.name);
    if (same >= 0) return same;
    const free = COLOURS.find(colour => palette.every(known => known.colour !== colour)) ?? of.colour;
    return palette.push({ ...of, colour: free }) - 1;
  });
  const colour = (/** @type {any} */ item) => ({ ...item, colour: palette.find(known => known.name === item.words)?.colour ?? item.colour });
  const moved = two.charts.map((/** @type {any} */ chart) => ({ ...chart, legend: chart.legend.map(colour), title: `${beside[0] === 'file' ? 'made' : 'beside'}: ${chart.title}`,
    rows: chart.rows.map((/** @type {any} */ row) => ({ ...row, entry: row.entry.map((/** @type {number} */ at) => entry[at]),
      several: Object.fromEntries(Object.entries(row.several).map(([at, parts]) => [at, parts.map((/** @type {number[]} */ [of, ...rest]) => [entry[of], ...rest])])) })) }));
  return { ...one, palette, charts: [...one.charts, ...moved] };
}

/** What else the machine could do: parts of it alone, and the best fixed shares.
 * @returns {{name: string, run: import('./state.js').Run}[]} */
function others() {
  if (run.place === 'cluster') {
    const all = catalogue.clusters.find(([name]) => name === run.name)?.[2] ?? 4;
    const nodes = Number(run.options.get('nodes') ?? all), fewer = [];
    for (let count = 1; count < nodes; count *= 2) fewer.push({ name: `${count} node${count > 1 ? 's' : ''}`, run: changed(run, { nodes: String(count) }) });
    return fewer;
  }
  /** @type {string[]} */
  const devices = present.machine.devices.map((/** @type {any} */ one) => one.name), gpus = devices.filter(name => !name.startsWith('host'));
  const parts = devices.length > 1 ? devices.map(name => [name]) : [];
  if (gpus.length > 1 && gpus.length < devices.length) parts.push(gpus);
  // A share for the CPU alone, and faults of others, mean nothing on a part.
  const faults = (/** @type {string[]} */ of) => (/** @type {string[]} */ (run.options.get('fault') ?? [])).filter(fault => of.some(name => fault.startsWith(`${name}:`)));
  const all = parts.map(names => {
    const part = changed(run, { devices: names.join(','), strategy: null, map: null });
    part.options.delete('fault');
    if (faults(names).length) part.options.set('fault', faults(names));
    return { name: names.length > 1 ? 'all GPUs alone' : `${names[0]} alone`, run: part };
  });
  const strategies = offered(catalogue, run.workload).find(one => one.name === 'strategy');
  if (strategies) all.push({ name: 'the best fixed shares', run: changed(run, { strategy: 'oracle' }) });
  return all;
}

/** Runs several, as many at once as the program does, and shows each when it is there.
 * @param {{name: string, run: import('./state.js').Run}[]} all @param {(rows: any[]) => void} draw
 * @param {AbortSignal} signal */
async function each(all, draw, signal) {
  /** @type {any[]} */
  const rows = all.map(({ name, run }) => ({ name, run }));
  draw(rows);
  await Promise.all(rows.map(async row => {
    try {
      row.report = (await answer(words(row.run), false, signal)).report;
    } catch (error) {
      row.error = /** @type {Error} */ (error).message;
    }
    if (!signal.aborted) draw(rows);
  }));
  return rows;
}

/** Compares the run that is shown with parts of the machine. @param {any} came */
async function compare(came) {
  comparing = new AbortController();
  const { signal } = comparing, own = { name: 'this run', run, report: came.report };
  part('compare').classList.remove('stale');
  const policies = element('div');
  const choose = offered(catalogue, run.workload).find(one =>
    ['policy', 'strategy', 'spread'].includes(one.name) && one.at.includes(run.place) && one.choices.length);
  const start = () => choose && each(choose.choices.map(([name]) => ({ name, run: changed(run, { [choose.name]: name }) })), rows => {
    const sorted = [...rows].sort((a, b) => (a.report?.seconds ?? Infinity) - (b.report?.seconds ?? Infinity));
    policies.replaceChildren(table(choose.name === 'policy' ? 'Policies' : 'Strategies', 'Choose one to see it.',
      sorted.map(row => ({ ...row, act: () => go(row.run) })), came.report.policy));
    document.body.dataset.policies = String(rows.filter(row => row.report || row.error).length);
  }, signal);
  const rows = element('div');
  part('compare').replaceChildren(rows, ...(choose ? [button(`compare all ${choose.name === 'policy' ? 'policies' : 'strategies'}`, 'run each of them', start)] : []), policies);
  const parts = others(), file = beside[0] === 'file' ? made[Number(beside[1])] : null;
  const rest = file?.report ? [{ name: file.name, report: file.report }] : [];
  sweep();
  if (!parts.length) return;
  await each(parts, found => {
    headline(part('headline'), came.report, found.filter(row => row.name !== 'the best fixed shares'));
    rows.replaceChildren(table('Against parts of the machine', 'The same work by fewer devices, and by the best fixed shares.',
      [own, ...rest, ...found].map(row => ({ ...row, act: !("run" in row) || row === own ? undefined : () => go(row.run) })), 'this run'));
  }, signal);
  if (!signal.aborted) document.body.dataset.compared = document.body.dataset.shown;
}

/** Shows another run, and its controls. @param {import('./state.js').Run} next */
function go(next) {
  form.show(next);
  begin(next);
}

/** The form of a sweep over one option. */
function sweep() {
  const numeric = offered(catalogue, run.workload).filter(one => one.at.includes(run.place) && !one.choices.length && one.value && /^(N|K\|auto|FRACTION|SIZE|N\|auto)$/.test(one.value) && one.name !== 'seed');
  const parent = part('sweep');
  parent.classList.remove('stale');
  const alternatives = [...others(), ...(beside.length && beside[0] !== 'file' ? [{ name: 'the run beside', run: null }] : [])];
  if (!numeric.length || !alternatives.length) {
    parent.replaceChildren();
    return;
  }
  const choice = (/** @type {string} */ label, /** @type {string[]} */ all) => element('select', { ariaLabel: label }, ...all.map(name => element('option', {}, name)));
  const option = choice('what is varied', numeric.map(one => one.name)), against = choice('compared with', alternatives.map(one => one.name));
  against.selectedIndex = Math.max(0, alternatives.findIndex(one => one.name.includes('gpu')));
  const number = (/** @type {string} */ label, /** @type {number} */ value) => element('input', { type: 'number', ariaLabel: label, value: String(value), min: '0', step: 'any' });
  const from = number('from', 1), to = number('to', 1), result = element('div');
  const fit = () => {
    const one = numeric[option.selectedIndex];
    const usual = parseFloat(String(run.options.get(one.name) ?? one.default ?? /default:? (\d+)/.exec(one.help)?.[1] ?? 8)) || 8;
    [from.value, to.value] = one.value === 'FRACTION' ? ['0', '0.3'] : [String(Math.max(1, Math.round(usual / 16))), String(Math.round(usual * 2))];
  };
  option.addEventListener('change', fit);
  fit();
  const start = () => swept(numeric[option.selectedIndex], Number(from.value), Number(to.value), alternatives[against.selectedIndex], result);
  parent.replaceChildren(element('h2', {}, 'From where on does the answer change?'),
    element('div', { className: 'row' }, 'vary', option, 'from', from, 'to', to, 'and compare with', against, button('sweep', 'run the sweep', start)), result);
}

/** How many runs of each a sweep has, before it looks closer at where the answer changes. */
const POINTS = 9;

/** @param {import('./state.js').Offered} option @param {number} from @param {number} to
 * @param {{name: string, run: import('./state.js').Run | null}} against @param {HTMLElement} result */
async function swept(option, from, to, against, result) {
  const { signal } = comparing, fraction = option.value === 'FRACTION', unit = option.value === 'SIZE' ? 'MiB' : '';
  const other = against.run ?? parse(beside, catalogue), own = run;
  const logarithmic = !fraction && from > 0;
  const value = (/** @type {number} */ at) => fraction ? Number((from + (to - from) * at).toPrecision(3))
    : Math.max(1, Math.round(logarithmic ? from * (to / from) ** at : from + (to - from) * at));
  /** @type {Map<number, number[]>} */
  const points = new Map();
  const draw = (/** @type {string} */ words_, /** @type {number | null} */ mark = null) => {
    const sorted = [...points].sort((a, b) => a[0] - b[0]);
    const line = (/** @type {string} */ name, /** @type {number} */ at) => ({ name, points: sorted.map(([x, ys]) => [x, ys[at] * 1e3]) });
    result.replaceChildren(element('p', { ariaLive: 'polite' }, words_), ...(sorted.length > 1
      ? [curves([line('this run', 0), line(against.name, 1)], option.name, 'makespan [ms]', undefined, logarithmic, mark),
      curves([{ name: `this run's time over that of ${against.name}`, points: sorted.map(([x, [own, others]]) => [x, own / others]) }], option.name, 'ratio', undefined, logarithmic, mark)] : []));
  };
  const measure = async (/** @type {number} */ x) => {
    if (points.has(x)) return;
    const with_ = (/** @type {import('./state.js').Run} */ of) => words(changed(of, { [option.name]: `${x}${unit}` }));
    const both = await Promise.all([own, other].map(of => answer(with_(of), false, signal)));
    points.set(x, both.map(came => came.report.seconds));
    draw('…');
  };
  try {
    draw('…');
    await Promise.all([...Array(POINTS).keys()].map(i => measure(value(i / (POINTS - 1)))));
    // Halves the last interval in which the answer changes.
    const both = (/** @type {number} */ x) => /** @type {number[]} */ (points.get(x));
    // What is within a hundredth is no gain.
    const better = (/** @type {number} */ x) => both(x)[0] < both(x)[1] * 0.99;
    for (let i = 0; i < 6; i++) {
      const xs = [...points.keys()].sort((a, b) => a - b), at = xs.findLastIndex((x, i) => i > 0 && better(x) !== better(xs[i - 1]));
      if (at < 0) break;
      const middle = logarithmic ? Math.round(Math.sqrt(xs[at] * xs[at - 1])) : (xs[at] + xs[at - 1]) / 2;
      if (points.has(middle)) break;
      await measure(middle);
    }
    const xs = [...points.keys()].sort((a, b) => a - b), at = xs.findLastIndex((x, i) => i > 0 && better(x) !== better(xs[i - 1]));
    const gains = (/** @type {number} */ x) => better(x) ? 'is faster' : 'gains nothing', changes = xs.filter((x, i) => i > 0 && better(x) !== better(xs[i - 1])).length;
    draw(at < 0 ? `Against ${against.name}, this run ${gains(xs[0])} from a ${option.name} of ${xs[0]}${unit} to ${xs[xs.length - 1]}${unit}.`
      : `From a ${option.name} of about ${xs[at]}${unit} on this run ${gains(xs[at])} against ${against.name}, and just below it ${gains(xs[at - 1])} (${xs[at - 1]}${unit}: ${both(xs[at - 1]).map(time).join(' and ')}; ${xs[at]}${unit}: ${both(xs[at]).map(time).join(' and ')}).${changes > 1 ? ` The answer changes ${changes} times.` : ''}`, at < 0 ? null : xs[at]);
    document.body.dataset.swept = String(at < 0 ? '' : xs[at]);
  } catch (error) {
    if (!signal.aborted) draw(/** @type {Error} */ (error).message);
  }
}

/** Downloads a text. @param {string} name @param {string} kind @param {string} text */
function save(name, kind, text) {
  const link = element('a', { href: URL.createObjectURL(new Blob([text], { type: kind })), download: name });
  link.click();
  URL.revokeObjectURL(link.href);
}

/** What of the run can be taken along. @param {string[]} of */
function exported(of) {
  // With a chart, reports also have bounds and how busy devices were, as the page's have.
  const drawn = changed(run, { gantt: 'run.html' }), command = shell(words(drawn)), lines = python(drawn), { place, name, changes } = run;
  const copy = (/** @type {string} */ label, /** @type {string} */ text) => {
    const made = button('copy', `copy ${label}`, async () => {
      await navigator.clipboard.writeText(text);
      made.textContent = 'copied';
    });
    return made;
  };
  const target = [name, ...[...changes].map(([key, value]) => `${key}=${value}`)].join(',');
  const guarded = (/** @type {() => Promise<void>} */ act) => () => act().catch(error => trouble(error.message));
  const beside_ = beside.length ? button('take away the run beside', 'show this run alone', () => {
    beside = [];
    begin(run);
  }) : button('keep it beside', 'compare the next changes with this run, on one time axis', () => {
    beside = words(run);
    begin(run);
  });
  part('export').replaceChildren(element('h2', {}, 'Take it along'),
    element('div', { className: 'row' }, beside_,
      button('chart as SVG', 'download the chart as SVG', guarded(async () => save('chart.svg', 'image/svg+xml', await ask('drawing', { words: of })))),
      ...(place === 'machine' ? [button('machine as a file', 'download the machine file', guarded(async () => save('machine.toml', 'text/plain', (await ask('machine', target)).toml)))] : []),
      copy('the link', location.href)),
    element('div', { className: 'row' }, 'In a shell', copy('the command', command)), element('pre', { id: 'command' }, command),
    element('div', { className: 'row' }, 'In Python', copy('the lines', lines)), element('pre', { id: 'python' }, lines));
}

/** Shows a run that was made, and below it what the simulator says of it. @param {number} index */
function given(index) {
  beside = ['file', String(index)];
  const { report, chart } = made[index], run = simulated(report, catalogue);
  if (run) {
    go(run);
    return;
  }
  // Nobody can simulate it.
  part('trouble').hidden = true;
  part('made').replaceChildren(list(made, index, given));
  charts.show(chart ?? { heights: [], palette: [], charts: [] });
  for (const id of ['headline', 'figures', 'compare', 'sweep', 'export']) part(id).replaceChildren();
  if (report) {
    headline(part('headline'), report, []);
    part('figures').replaceChildren(reasons(report, chart), ...shares(report), ...uses(chart));
  }
  part('compare').append(element('p', { className: 'muted' }, 'The simulator does not know this run: its file has no command, or its machine is in no machine file (`pdawl machine save NAME` makes one).'));
  const other = report?.command && catalogue.workloads.some(one => one.name === report.command[0]) ? elsewhere(report, catalogue) : null;
  if (other) part('compare').append(button(`simulate it on ${other.name}`, `what it would be on ${other.name}`, () => go(other)));
  document.body.dataset.shown = JSON.stringify(beside);
}

/** Shows what the address has, or what the program was given. */
async function load() {
  if (location.hash === '#watch') {
    document.body.classList.add('watching');
    const ended = await watch(part('headline'), part('figures'));
    document.body.classList.remove('watching');
    if (ended) made.push(ended);
    history.replaceState(null, '', '#');
  }
  const state = fromAddress(location.hash);
  if (!state.run.length && made.length) {
    opened.abort();
    given(0);
    return;
  }
  beside = state.beside;
  go(parse(state.run.length ? state.run : FIRST, catalogue));
}

window.addEventListener('hashchange', load);
load();
