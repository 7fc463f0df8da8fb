// @ts-check
// The controls: of the options that the program offers, and of the machine's figures.

import { PLACES, ask, offered, parse, words } from './state.js';

/** Options that have a place of their own. */
const APART = [...PLACES, 'nodes', 'devices', 'policy', 'strategy', 'spread', 'fault', 'noise', 'seed'];
/** What the options of greatest interest are; others are folded. */
const FIRST = ['size', 'matrix', 'steps', 'heads', 'beta', 'layers', 'set', 'n', 'tile', 'gpu-memory', 'superstep', 'precision'];
/** Examples of values that are no numbers. */
const EXAMPLES = /** @type {Object<string, string[]>} */ ({
  matrix: ['uniform:200000,16', 'banded:1000000,8', 'rmat:16,16', 'rmat:20,16'],
  'gpu-memory': ['256MiB', '512MiB', '1GiB', '2GiB', '8GiB'],
  'host-memory': ['1GiB', '8GiB', '32GiB'],
});
let names = 0;

export class Form {
  /** @param {HTMLElement} parent @param {import('./state.js').Catalogue} catalogue
   * @param {(run: import('./state.js').Run) => void} changed */
  constructor(parent, catalogue, changed) {
    Object.assign(this, { parent, catalogue, changed });
    this.parent = parent;
    this.catalogue = catalogue;
    this.changed = changed;
    /** @type {import('./state.js').Run} */
    this.run = parse([], catalogue);
    /** The machine's file without changes. @type {any} */
    this.machine = null;
    parent.addEventListener('submit', event => event.preventDefault());
  }

  /** Shows a run. @param {import('./state.js').Run} run */
  async show(run) {
    const other = run.place !== 'machine' || run.name !== this.machine?.name;
    this.run = run;
    if (other) {
      // A machine that is not known is told by the run.
      this.machine = run.place === 'machine'
        ? await ask('machine', run.name).then(found => found.machine, () => null) : null;
      if (this.run !== run) return;
    }
    this.draw();
  }

  /** The user changed something; whether other controls follow. @param {boolean} [redraw] */
  tell(redraw) {
    const run = parse(words(this.run), this.catalogue);
    this.run = run;
    this.changed(run);
    if (redraw) this.show(run);
  }

  draw() {
    const { run, catalogue } = this, options = offered(catalogue, run.workload);
    const here = options.filter(one => one.at.includes(run.place));
    const of = (/** @type {string} */ name) => here.find(one => one.name === name);
    const rank = (/** @type {import('./state.js').Offered} */ one) =>
      one.required ? -1 : (FIRST.indexOf(one.name) + FIRST.length + 1) % (FIRST.length + 1);
    const others = here.filter(one => !APART.includes(one.name)).sort((a, b) => rank(a) - rank(b));
    const shown = others.filter(one => one.required || FIRST.includes(one.name) || run.options.has(one.name));
    const hidden = others.filter(one => !shown.includes(one));
    const controls = (/** @type {(import('./state.js').Offered | undefined)[]} */ all) =>
      all.flatMap(one => one ? [this.option(one)] : []);
    const open = this.parent.querySelector('details')?.open ?? false, top = this.parent.scrollTop;
    this.parent.replaceChildren(
      group('Work', this.choice('workload', catalogue.workloads.map(one => [one.name, one.about]), run.workload, value => {
        this.run = this.of(value);
        this.tell(true);
      }), ...controls(shown), ...(hidden.length ? [element('details', { open }, element('summary', {}, 'more options'), ...controls(hidden))] : [])),
      group('Decisions', ...controls([of('policy'), of('strategy'), of('spread'), of('seed')])),
      group('Machine', ...this.place(options), ...controls(run.place === 'cluster' ? [of('nodes')] : []), ...this.figures()),
      group('Trouble', ...controls([of('noise'), of('fault')])),
    );
    this.parent.scrollTop = top;
  }

  /** The run of another workload, on the same machine where it can be. @param {string} workload */
  of(workload) {
    const options = offered(this.catalogue, workload);
    const kept = [...this.run.options].filter(([name]) =>
      ['noise', 'seed', 'devices', 'fault'].includes(name) && options.some(one => one.name === name));
    const places = options.flatMap(one => one.at), place = places.includes(this.run.place) ? this.run.place : places[0];
    const needed = options.filter(one => one.required).map(one => /** @type {[string, string]} */ (
      [one.name, EXAMPLES[one.name]?.[0] ?? one.choices[0]?.[0] ?? (one.name === 'n' ? '20' : '1')]));
    const other = place !== this.run.place;
    return { workload, place, name: other ? { machine: this.catalogue.machines[0][0], cluster: this.catalogue.clusters[0]?.[0] }[place] ?? '' : this.run.name,
      changes: other ? new Map() : this.run.changes, options: new Map([...needed, ...kept]) };
  }

  /** @param {string} name @param {[string, string][]} choices @param {string} value
   * @param {(value: string) => void} act @param {string} [none] */
  choice(name, choices, value, act, none) {
    const id = `control${++names}`;
    const known = choices.some(([one]) => one === value) || value === '';
    const all = known ? choices : [...choices, [value, '']];
    const select = element('select', { id, name }, ...(none === undefined ? [] : [element('option', { value: '' }, none)]),
      ...all.map(([one, help]) => element('option', { value: one, title: help }, one)));
    select.value = value;
    select.addEventListener('change', () => act(select.value));
    return element('div', { className: 'control' }, element('label', { htmlFor: id }, name.replace(/-/g, ' ')), select);
  }

  /** The control of an option. @param {import('./state.js').Offered} option @returns {HTMLElement} */
  option(option) {
    const { name } = option, given = this.run.options.get(name), id = `control${++names}`;
    const set = (/** @type {string | true | string[] | null} */ value, redraw = false) => {
      if (value === null || value === option.default || (value !== true && value.length === 0)) this.run.options.delete(name);
      else this.run.options.set(name, value);
      this.tell(redraw);
    };
    if (name === 'fault') return this.faults(/** @type {string[]} */ (given ?? []), set);
    const label = element('label', { htmlFor: id, title: option.help }, name.replace(/-/g, ' '));
    if (option.value === null) {
      const box = element('input', { id, type: 'checkbox', checked: given === true });
      box.addEventListener('change', () => set(box.checked ? true : null));
      return element('div', { className: 'control' }, label, box);
    }
    if (option.choices.length) {
      const none = option.required || option.default !== null ? undefined : 'as the program chooses';
      const control = this.choice(name, option.choices, String(given ?? option.default ?? ''), value => set(value || null), none);
      control.title = option.help;
      return control;
    }
    const nodes = this.catalogue.clusters.find(([of]) => name === 'nodes' && of === this.run.name)?.[2];
    const usual = option.default ?? /default:? (\d+)/.exec(option.help)?.[1] ?? String(nodes ?? '');
    const value = String(given ?? '');
    const input = element('input', { id, name, value, placeholder: usual || 'none', autocomplete: 'off' });
    input.addEventListener('change', () => set(input.value.trim() || null, true));
    const control = element('div', { className: 'control' }, label, input);
    if (EXAMPLES[name]) {
      const list = element('datalist', { id: `list${id}` }, ...EXAMPLES[name].map(one => element('option', { value: one })));
      input.setAttribute('list', list.id);
      control.append(list);
      return control;
    }
    const number = Number(value || usual || NaN), fraction = option.value === 'FRACTION';
    if (!fraction && !(number > 0 && Number.isInteger(number)) || name === 'seed') return control;
    // Whole numbers by powers of two around the usual one, fractions as they are.
    const middle = Math.log2(Number(usual) || number);
    const slider = fraction ? range(0, 0.5, 0.01, Number(value || 0))
      : range(Math.max(0, Math.min(middle - 4, Math.log2(number))), Math.max(middle + 4, Math.log2(number)), 'any', Math.log2(number));
    slider.setAttribute('aria-label', `${name}, slider`);
    slider.addEventListener('input', () => {
      const moved = fraction ? Number(slider.value) : rounded(2 ** Number(slider.value));
      input.value = moved === 0 ? '' : String(moved);
      set(input.value || null);
    });
    control.append(slider);
    return control;
  }

  /** @param {string[]} given @param {(value: string[], redraw?: boolean) => void} set */
  faults(given, set) {
    const device = element('select', { ariaLabel: 'device' }, ...this.devices().map(name => element('option', {}, name)));
    const kind = element('select', { ariaLabel: 'what happens' }, ...['slow:2', 'slow:4', 'lost', 'back', 'cores:1', 'fail:1'].map(name => element('option', {}, name)));
    const step = element('input', { type: 'text', value: offered(this.catalogue, this.run.workload).some(one => one.name === 'steps') ? '10' : '0.001s', size: 5, ariaLabel: 'at which step, or time such as 0.001s' });
    const add = button('add', 'add a fault', () => set([...given, `${device.value}:${kind.value}@${step.value.trim()}`], true));
    const rows = given.map((fault, i) => element('div', { className: 'row' }, fault,
      button('×', `take out ${fault}`, () => set(given.filter((_, at) => at !== i), true))));
    return element('div', { className: 'control' }, element('label', {}, 'faults'), element('span'),
      element('div', { className: 'row' }, device, kind, '@', step, add), ...rows.map(row => {
        row.classList.add('row');
        return row;
      }));
  }

  /** Machines and clusters. @param {import('./state.js').Offered[]} options */
  place(options) {
    const { run, catalogue } = this;
    if (run.place === 'starpu') {
      const id = `control${++names}`, input = element('input', { id, value: run.name });
      input.addEventListener('change', () => {
        this.run = { ...this.run, name: input.value.trim() };
        this.tell(true);
      });
      return [element('div', { className: 'control' }, element('label', { htmlFor: id }, 'folder of a recording by StarPU'), input)];
    }
    const can = (/** @type {string} */ place) => options.some(one => one.at.includes(place));
    const all = [...(can('machine') ? catalogue.machines.map(([name, title]) => [`machine ${name}`, title]) : []),
      ...(can('cluster') ? catalogue.clusters.map(([name, title]) => [`cluster ${name}`, title]) : [])];
    return [this.choice('machine or cluster', /** @type {[string, string][]} */ (all), `${run.place} ${run.name}`, value => {
      const [place, ...name] = value.split(' ');
      const there = offered(catalogue, run.workload).filter(one => one.at.includes(place)).map(one => one.name);
      const options = [...this.run.options].filter(([name]) => there.includes(name) && name !== 'fault');
      this.run = { ...this.run, place, name: name.join(' '), changes: new Map(), options: new Map(options) };
      this.tell(true);
    })];
  }

  /** Names of the devices, with those that were added. */
  devices() {
    const { changes } = this.run;
    const own = ['host', ...(this.machine?.device ?? []).map((/** @type {any} */ one) => one.name)];
    const added = [...changes].filter(([key, value]) => !key.includes('.') && value !== 'none').map(([key]) => key);
    return [...own, ...added].filter(name => changes.get(name) !== 'none');
  }

  /** What can be changed of the machine. */
  figures() {
    const { machine, run } = this;
    if (!machine) return [];
    const set = (/** @type {string} */ key, /** @type {string | null} */ value, redraw = false) => {
      // Other controls may have changed the run since these were drawn.
      this.run.changes.delete(key);
      if (value !== null) this.run.changes.set(key, value);
      this.tell(redraw);
    };
    const factor = (/** @type {string} */ key, /** @type {string} */ label) => {
      const id = `control${++names}`, given = run.changes.get(key) ?? '1x';
      const shown = element('output', { htmlFor: id }, given === '1x' ? 'as it is' : `times ${parseFloat(given)}`);
      const slider = range(-4, 4, 0.25, Math.log2(parseFloat(given) || 1));
      Object.assign(slider, { id });
      slider.addEventListener('input', () => {
        const times = Number((2 ** Number(slider.value)).toPrecision(3));
        shown.textContent = times === 1 ? 'as it is' : `times ${times}`;
        set(key, times === 1 ? null : `${times}x`);
      });
      return element('div', { className: 'control' }, element('label', { htmlFor: id }, label), shown, slider);
    };
    const cores = (() => {
      const id = `control${++names}`, change = run.changes.get('host.cores') ?? '1x';
      const given = change.endsWith('x') ? Math.round(parseFloat(change) * machine.host.cores) : Number(change);
      const shown = element('output', { htmlFor: id }, String(given)), slider = range(1, machine.host.cores * 2, 1, given);
      Object.assign(slider, { id });
      slider.addEventListener('input', () => {
        shown.textContent = slider.value;
        set('host.cores', Number(slider.value) === machine.host.cores ? null : slider.value);
      });
      return element('div', { className: 'control' }, element('label', { htmlFor: id }, 'host cores'), shown, slider);
    })();
    const names_ = this.devices().filter(name => name !== 'host');
    const own = (machine.device ?? []).map((/** @type {any} */ one) => one.name);
    const devices = [...own, ...names_.filter(name => !own.includes(name))].map(name => {
      const like = own.includes(name) ? name : run.changes.get(name);
      const spec = machine.device.find((/** @type {any} */ one) => one.name === like);
      const there = element('input', { type: 'checkbox', checked: names_.includes(name), ariaLabel: `${name} takes part` });
      there.addEventListener('change', () => {
        // What was changed of it goes with it.
        for (const key of [...this.run.changes.keys()]) if (key.startsWith(`${name}.`)) this.run.changes.delete(key);
        set(name, own.includes(name) && !there.checked ? 'none' : null, true);
      });
      const next = () => {
        let number = 0;
        while ([...own, ...names_].includes(`gpu${number}`)) number++;
        set(`gpu${number}`, name, true);
      };
      const summary = element('div', { className: 'row' }, element('label', {}, there, ` ${name}`),
        element('span', { className: 'muted' }, spec?.model ?? ''), ...(own.includes(name) && there.checked ? [button('+', `add a device like ${name}`, next)] : []));
      return element('div', {}, summary, ...(there.checked ? [factor(`${name}.speed`, 'speed'),
        ...(spec?.link ? [factor(`${name}.link`, 'link')] : []), factor(`${name}.memory`, 'memory')] : []));
    });
    const peers = machine.peer?.length ? [factor('peers.bandwidth', 'links between devices')] : [];
    return [cores, factor('host.speed', 'host speed'), ...devices, ...peers, this.everyFigure(set)];
  }

  /** All figures of the file, by their keys. @param {(key: string, value: string | null, redraw?: boolean) => void} set */
  everyFigure(set) {
    const { machine, run } = this;
    /** @type {HTMLElement[]} */
    const rows = [];
    const list = (/** @type {string} */ part, /** @type {any} */ table) => {
      for (const [key, value] of Object.entries(table)) {
        if (value !== null && typeof value === 'object') list(`${part}.${key}`, value);
        if (typeof value !== 'number') continue;
        const name = `${part}.${key}`, id = `control${++names}`;
        const input = element('input', { id, value: run.changes.get(name) ?? '', placeholder: String(value) });
        input.addEventListener('change', () => set(name, input.value.trim() || null, true));
        rows.push(element('div', { className: 'control' }, element('label', { htmlFor: id }, name), input));
      }
    };
    const details = element('details', {}, element('summary', {}, 'every figure of the machine file'));
    // They are many, and rarely wanted.
    details.addEventListener('toggle', () => {
      if (!details.open || rows.length) return;
      list('host', machine.host);
      for (const device of machine.device ?? []) list(device.name, device);
      details.append(...rows);
    });
    return details;
  }
}

/** @param {string} title @param {...HTMLElement} controls */
const group = (title, ...controls) => element('fieldset', { hidden: controls.length === 0 }, element('legend', {}, title), ...controls);

/** @param {number} min @param {number} max @param {number | string} step @param {number} value */
const range = (min, max, step, value) =>
  element('input', { type: 'range', className: 'slider', min: String(min), max: String(max), step: String(step), value: String(value) });

/** A number of few digits, or a power of two. @param {number} of */
const rounded = of => {
  const power = 2 ** Math.round(Math.log2(of));
  return of < 100 || Math.abs(of / power - 1) < 0.01 ? Math.round(Math.abs(of / power - 1) < 0.01 ? power : of) : Number(of.toPrecision(2));
};

/** @param {string} sign @param {string} label @param {() => void} act */
export function button(sign, label, act) {
  const made = element('button', { type: 'button', ariaLabel: label, title: label }, sign);
  made.addEventListener('click', act);
  return made;
}
