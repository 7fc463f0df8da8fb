// @ts-check
// What is shown of reports: the headline, why devices rest, tables and curves.

import { button } from './form.js';

/** Colours of Okabe and Ito, which colour-blind readers tell apart. */
export const COLOURS = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#8c959f', '#f0e442'];
/** @param {number} seconds */
export const time = seconds => duration(seconds * 1e9);
/** @param {number} ratio */
const times = ratio => `${ratio.toFixed(2)} x`;
/** @param {number} part */
const percent = part => `${(part * 100).toFixed(1)} %`;

/** The makespan, and what it cannot go below. @param {HTMLElement} parent @param {any} report
 * @param {any[]} parts Other parts of the machine, with their reports. */
export function headline(parent, report, parts) {
  const { seconds, bounds, throughput } = report;
  const done = parts.filter(part => part.report);
  const best = done.reduce((least, part) => !least || part.report.seconds < least.report.seconds ? part : least, null);
  const lines = [];
  if (best) {
    const ratio = seconds / best.report.seconds;
    lines.push(ratio > 1.005 ? `${times(ratio)} the best part alone, ${best.name} (${time(best.report.seconds)})`
      : `the best part alone, ${best.name}, takes ${times(1 / ratio)} as long (${time(best.report.seconds)})`);
  }
  const bound = Math.max(bounds?.area_seconds ?? 0, bounds?.critical_path_seconds ?? 0);
  if (bound > 0) lines.push(`${times(seconds / bound)} its lower bound, ${time(bound)}`);
  if (throughput) lines.push(scaled(throughput.value, [[1e12, `T${throughput.unit}`], [1e9, `G${throughput.unit}`], [1e6, `M${throughput.unit}`], [1, throughput.unit]]));
  const total = (/** @type {string} */ key) => report.devices.reduce((/** @type {number} */ all, /** @type {any} */ one) => all + (one[key] ?? 0), 0);
  lines.push(`over links: ${memory(total('bytes_h2d'))} to devices, ${memory(total('bytes_d2h'))} back, ${memory(total('bytes_peer'))} between them`);
  parent.replaceChildren(element('strong', {}, time(seconds)), `${report.workload.title}, ${report.policy}, ${report.machine.simulated ? 'simulated' : 'measured'}`,
    element('ul', { className: 'plain' }, ...lines.map(line => element('li', {}, line))));
}

/** Why devices rest. @param {any} report @param {any} chart */
export function reasons(report, chart) {
  const strips = chart?.charts[0]?.strips ?? [];
  const all = report.devices.map((/** @type {any} */ device, /** @type {number} */ i) => {
    const name = device.node === null ? device.name : `node ${device.node}, ${device.name}`;
    // Both are in the same order.
    const [kernels, copies] = strips.length === report.devices.length ? strips[i].whole : [null, 0];
    if (device.share === 0) return `${name} gets no work${left(report, device.name)}.`;
    if (kernels === null) return `${name} has ${percent(device.share)} of the work.`;
    const idle = Math.max(0, 1 - kernels - copies);
    const why = copies > 0.05 && copies >= idle ? 'it waits for its link'
      : idle < 0.05 ? 'it hardly rests' : device.idle_seconds !== null ? 'it waits for others at barriers' : 'no task is ready for it, or others are to have it';
    return `${name} has ${percent(device.share)} of the work: kernels ${percent(kernels)} of the time, copies alone ${percent(copies)}, nothing ${percent(idle)}; ${why}.`;
  });
  return element('div', {}, element('h2', {}, 'Why devices rest'), element('ul', { className: 'plain' },
    ...[...all, ...report.notes.filter((/** @type {string} */ note) => !all.some((/** @type {string} */ line) => line.includes(note)))].map((/** @type {string} */ line) => element('li', {}, line))));
}

/** What the report says of a device that was left out. @param {any} report @param {string} name */
function left(report, name) {
  const note = report.notes.find((/** @type {string} */ one) => one.includes(name) && one.includes('expected'));
  return note ? `: ${note}` : '';
}

/** What devices have of their memory, and take of their links. @param {any} chart
 * @returns {HTMLElement[]} */
export function uses(chart) {
  const { uses = [], lead = 0, after = 1, strips = [] } = chart?.charts[0] ?? {};
  const held = uses.filter((/** @type {any} */ of) => of.memory.length).map((/** @type {any} */ of) => ({
    name: of.device,
    // What data have stays until the next change.
    points: [...of.memory, [after, of.memory[of.memory.length - 1][1]]].flatMap(([at, bytes], i, all) =>
      [...(i ? [[at / 1e6, all[i - 1][1] / 2 ** 20]] : []), [at / 1e6, bytes / 2 ** 20]]),
  }));
  const [{ begin = -lead, length = after + lead } = {}] = strips;
  const links = uses.flatMap((/** @type {any} */ of) => ['to', 'from', 'to, from another device,'].flatMap((way, link) => {
    const part = length / of.links[link].length;
    return of.links[link].some((/** @type {number} */ bytes) => bytes > 0)
      ? [{ name: `${way} ${of.device}`, points: of.links[link].map((/** @type {number} */ bytes, /** @type {number} */ i) => [(begin + (i + 0.5) * part) / 1e6, bytes / part]) }] : [];
  }));
  return [
    ...(held.length ? [element('div', {}, element('h2', {}, 'Memory in use'), curves(held, 'time [ms]', 'data [MiB]'))] : []),
    ...(links.length ? [element('div', {}, element('h2', {}, 'Bytes on links'), curves(links, 'time [ms]', 'rate [GB/s]'))] : []),
  ];
}

/** A table of runs, the fastest marked. @param {string} title @param {string} caption
 * @param {{name: string, report?: any, error?: string, act?: () => void}[]} rows @param {string} [own] */
export function table(title, caption, rows, own) {
  const seconds = rows.flatMap(row => row.report ? [row.report.seconds] : []), least = Math.min(...seconds);
  const line = (/** @type {typeof rows[0]} */ row) => {
    const { report, error, act } = row;
    const name = act ? element('td', {}, button(row.name, `show ${row.name}`, act)) : element('td', {}, row.name);
    const bytes = report?.devices.reduce((/** @type {number} */ all, /** @type {any} */ one) =>
      all + (one.bytes_h2d ?? 0) + (one.bytes_d2h ?? 0) + (one.bytes_peer ?? 0), 0);
    const cells = report ? [time(report.seconds), times(report.seconds / least), memory(bytes)]
      : [error ? 'refused' : '…', '', ''];
    return element('tr', { ariaSelected: String(row.name === own), title: error ?? '' }, name, ...cells.map(words => element('td', {}, words)));
  };
  return element('div', {}, element('h2', {}, title), element('p', { className: 'muted' }, caption),
    element('div', { className: 'wide' }, element('table', {}, element('tr', {}, ...['Run', 'Makespan', 'Of the best', 'Over links'].map(words => element('th', {}, words))),
      ...rows.map(line))));
}

/** Shares over steps. @param {any} report @returns {HTMLElement[]} */
export function shares(report) {
  const steps = report.details.steps ?? [];
  if (steps.length < 2 || !steps[0].shares) return [];
  const names = report.devices.map((/** @type {any} */ one) => one.name);
  const lines = names.map((/** @type {string} */ name, /** @type {number} */ i) => ({
    name, points: steps.map((/** @type {any} */ step) => [step.step, step.shares[i] * 100]),
  }));
  return [element('div', {}, element('h2', {}, 'Shares over steps'), curves(lines, 'step', 'share [%]', [0, 100])),
    element('div', {}, element('h2', {}, 'Seconds of steps'), curves([{ name: 'a step', points: steps.map((/** @type {any} */ step) => [step.step, step.seconds * 1e3 / step.steps]) }], 'step', 'time [ms]'))];
}

/** Lines over one axis, as a picture with a label in words.
 * @param {{name: string, points: number[][]}[]} lines @param {string} across @param {string} up
 * @param {number[]} [range] @param {boolean} [logarithmic] Both axes, of numbers above 0. @param {number | null} [mark] */
export function curves(lines, across, up, range, logarithmic = false, mark = null) {
  const canvas = element('canvas');
  canvas.setAttribute('role', 'img');
  const all = lines.flatMap(line => line.points), xs = all.map(point => point[0]), ys = all.map(point => point[1]);
  canvas.ariaLabel = `${up} by ${across}: ${lines.map(line => `${line.name} from ${line.points[0]?.[1].toPrecision(3)} to ${line.points[line.points.length - 1]?.[1].toPrecision(3)}`).join('; ')}`;
  const legend = element('ul', {}, ...lines.map((line, i) => {
    const swatch = element('i', { ariaHidden: 'true' });
    swatch.style.setProperty('--colour', COLOURS[i % COLOURS.length]);
    return element('li', {}, swatch, line.name);
  }));
  const node = element('div', { className: 'chart' }, legend, canvas);
  const draw = () => {
    const width = node.clientWidth, height = 170, ratio = devicePixelRatio || 1;
    if (!width || !all.length) return;
    Object.assign(canvas, { width: width * ratio, height: height * ratio });
    Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
    const context = canvas.getContext('2d');
    context.scale(ratio, ratio);
    context.font = "12px system-ui, 'DejaVu Sans', sans-serif";
    const scale = (/** @type {number} */ of) => logarithmic ? Math.log(of) : of;
    const back = (/** @type {number} */ of) => logarithmic ? Math.exp(of) : of;
    const [left, right, top, bottom] = [56, width - 12, 8, height - 34];
    const [x0, x1] = [Math.min(...xs), Math.max(...xs)].map(scale);
    const [y0, y1] = (range ?? [logarithmic ? Math.min(...ys) / 1.05 : 0, Math.max(...ys) * 1.05 || 1]).map(scale);
    const x = (/** @type {number} */ of) => left + (scale(of) - x0) / Math.max(1e-300, x1 - x0) * (right - left);
    const y = (/** @type {number} */ of) => bottom - (scale(of) - y0) / (y1 - y0) * (bottom - top);
    context.fillStyle = context.strokeStyle = themed('#57606a');
    for (const at of [y0, (y0 + y1) / 2, y1].map(back)) {
      context.textAlign = 'right';
      context.fillText(String(Number(at.toPrecision(3))), left - 6, y(at) + 4);
      context.globalAlpha = 0.3;
      context.fillRect(left, y(at), right - left, 1);
      context.globalAlpha = 1;
    }
    context.textAlign = 'left';
    const label = (/** @type {number} */ of) => String(Number.isInteger(of) ? of : Number(of.toPrecision(4)));
    context.fillText(label(Math.min(...xs)), left, bottom + 14);
    context.fillText(up, left, height - 4);
    context.textAlign = 'right';
    context.fillText(label(Math.max(...xs)), right, bottom + 14);
    context.fillText(across, right, height - 4);
    if (mark !== null) {
      context.setLineDash([4, 3]);
      context.beginPath();
      context.moveTo(x(mark), top);
      context.lineTo(x(mark), bottom);
      context.stroke();
      context.setLineDash([]);
    }
    lines.forEach((line, i) => {
      context.strokeStyle = COLOURS[i % COLOURS.length];
      context.lineWidth = 2;
      // Lines also differ without their colours.
      context.setLineDash([[], [8, 3], [2, 2], [8, 3, 2, 3]][i % 4]);
      context.beginPath();
      line.points.forEach(([of, value]) => context.lineTo(x(of), y(value)));
      context.stroke();
      context.setLineDash([]);
    });
  };
  new ResizeObserver(draw).observe(node);
  return node;
}
