// @ts-check
// Runs that were made: from files, and one that goes on.

import { button } from './form.js';
import { PLACES, ask, offered, parse } from './state.js';
import { shares, time } from './views.js';

/** @typedef {{name: string, report: any, chart: any}} Made */

/** The run that the simulator is to compare with one that was made; `null` if nobody knows its
 * machine or its words. @param {any} report @param {import('./state.js').Catalogue} catalogue
 * @returns {import('./state.js').Run | null} */
export function simulated(report, catalogue) {
  if (!report?.command) return null;
  const [workload, ...rest] = report.command, run = parse([workload, ...rest], catalogue);
  const named = rest.some((/** @type {string} */ word) => PLACES.some(place => word === `--${place}`));
  if (!report.machine.simulated) {
    if (!catalogue.machines.some(([name]) => name === report.machine.name)) return null;
    // With a change, even of nothing, this machine is simulated, too.
    Object.assign(run, { place: 'machine', name: report.machine.name, changes: new Map([['host.cores', '1x']]) });
  } else if (!named) {
    return null;
  }
  const known = offered(catalogue, workload).filter(one => one.at.includes(run.place)).map(one => one.name);
  run.options = new Map([...run.options].filter(([name]) => known.includes(name)));
  return known.length ? run : null;
}

/** The same run on a machine that is always known. @param {any} report
 * @param {import('./state.js').Catalogue} catalogue */
export function elsewhere(report, catalogue) {
  return simulated({ ...report, machine: { simulated: true },
    command: [...report.command, '--machine', catalogue.machines[0][0]] }, catalogue);
}

/** A table of runs that were made. @param {Made[]} all @param {number} shown
 * @param {(index: number) => void} act */
export function list(all, shown, act) {
  const row = (/** @type {Made} */ made, /** @type {number} */ i) => element('tr', { ariaSelected: String(i === shown) },
    element('td', {}, button(made.name, `show ${made.name}`, () => act(i))),
    ...[made.report?.workload.title ?? '', made.report?.policy ?? '', made.report ? time(made.report.seconds) : '',
      made.report ? (made.report.machine.simulated ? 'simulated' : 'measured') : '', made.report?.machine.name ?? ''].map(words => element('td', {}, words)));
  return element('div', {}, element('h2', {}, 'Runs that were made'),
    element('p', { className: 'muted' }, 'Choose one to see it below what the simulator says of it.'),
    element('div', { className: 'wide' }, element('table', {},
      element('tr', {}, ...['File', 'Work', 'Decisions', 'Makespan', '', 'Machine'].map(words => element('th', {}, words))), ...all.map(row))));
}

/** How often a run that goes on is asked about, in milliseconds. */
const OFTEN = 200;

/** Shows a run while it goes on, and returns it at its end. @param {HTMLElement} headline
 * @param {HTMLElement} figures @returns {Promise<Made | null>} */
export async function watch(headline, figures) {
  for (;;) {
    const now = await ask('watch', undefined);
    if (!now) return null;
    if (now.ended) return { name: 'the run', ...now.ended };
    const bar = element('progress', { max: now.all || 1, value: now.done, ariaLabel: 'how far the run is' });
    headline.replaceChildren(element('strong', {}, now.all ? `${now.done} of ${now.all}` : 'preparing'), now.what, ' ', bar);
    const devices = now.devices.map((/** @type {string} */ name) => ({ name }));
    figures.replaceChildren(...shares({ devices, details: { steps: now.steps } }));
    await new Promise(passed => setTimeout(passed, OFTEN));
  }
}
