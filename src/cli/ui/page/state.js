// @ts-check
// The page's state: a run in words, as `pdawl run` takes it, and another one beside it. All of it
// is in the address.

/** @typedef {{workload: string, place: string, name: string, changes: Map<string, string>,
 *   options: Map<string, string | true | string[]>}} Run
 * `changes` are those of the machine, `options` all others but the place. */

/** @typedef {{name: string, value: string | null, help: string, default: string | null,
 *   required: boolean, many: boolean, choices: [string, string][], at: string[]}} Offered */
/** @typedef {{name: string, about: string, options: Offered[]}} Workload */
/** @typedef {{version: string, workloads: Workload[], machines: [string, string][],
 *   clusters: [string, string, number][]}} Catalogue */

/** The options that say where a run is. */
export const PLACES = ['machine', 'cluster', 'starpu'];
export const FIRST = ['cholesky', '--machine', 'v100x2', '--size', '8192'];

/** The words of a run. @param {Run} run @returns {string[]} */
export function words(run) {
  const changes = [...run.changes].map(([key, value]) => `${key}=${value}`);
  const all = [run.workload, `--${run.place}`, [run.name, ...changes].join(',')];
  for (const [name, value] of run.options) {
    if (value === true) all.push(`--${name}`);
    else for (const one of [value].flat()) all.push(`--${name}`, one);
  }
  return all;
}

/** The run of words; of the first case where they have no place. @param {string[]} given
 * @param {Catalogue} catalogue @returns {Run} */
export function parse(given, catalogue) {
  const [workload = FIRST[0], ...rest] = given;
  /** @type {Run} */
  const run = { workload, place: 'machine', name: '', changes: new Map(), options: new Map() };
  const options = offered(catalogue, workload);
  for (let i = 0; i < rest.length; i++) {
    const [, name, inline] = /^--([^=]+)(?:=(.*))?$/s.exec(rest[i]) ?? [, rest[i], undefined];
    const option = options.find(one => one.name === name);
    const value = inline ?? (option && option.value === null ? true : rest[++i] ?? '');
    if (PLACES.includes(String(name))) {
      const [base, ...changes] = name === 'machine' ? String(value).split(',') : [String(value)];
      Object.assign(run, { place: name, name: base });
      for (const change of changes) {
        const at = change.indexOf('=');
        run.changes.set(change.slice(0, at), change.slice(at + 1));
      }
    } else if (option?.many) {
      run.options.set(String(name), [...(/** @type {string[]} */ (run.options.get(String(name)) ?? [])), String(value)]);
    } else {
      run.options.set(String(name), value);
    }
  }
  if (!run.name && run.place === 'machine') Object.assign(run, { place: 'machine', name: FIRST[2] });
  return run;
}

/** The options of a workload. @param {Catalogue} catalogue @param {string} workload */
export function offered(catalogue, workload) {
  return catalogue.workloads.find(one => one.name === workload)?.options ?? [];
}

/** A copy with other options, of which `null` takes one out. @param {Run} run
 * @param {Object<string, string | true | null>} others @returns {Run} */
export function changed(run, others) {
  const options = new Map(run.options);
  for (const [name, value] of Object.entries(others)) {
    if (value === null) options.delete(name);
    else options.set(name, value);
  }
  return { ...run, options, changes: new Map(run.changes) };
}

/** What the address has. @param {string} hash @returns {{run: string[], beside: string[]}} */
export function fromAddress(hash) {
  const parts = new Map(hash.replace(/^#/, '').split('&').map(part => {
    const at = part.indexOf('=');
    return [part.slice(0, at), part.slice(at + 1)];
  }));
  const read = (/** @type {string} */ key) => {
    try {
      return (parts.get(key) ?? '').split('+').filter(Boolean).map(decodeURIComponent);
    } catch {
      // An address that was cut off.
      return [];
    }
  };
  return { run: read('run'), beside: read('beside') };
}

/** The address of a state. @param {string[]} run @param {string[]} beside */
export function address(run, beside) {
  const write = (/** @type {string[]} */ all) => all.map(word =>
    encodeURIComponent(word).replace(/%(2C|3A|3D|40|2F)/g, decodeURIComponent)).join('+');
  return `#run=${write(run)}${beside.length ? `&beside=${write(beside)}` : ''}`;
}

/** The command of a shell. @param {string[]} run */
export function shell(run) {
  const quoted = run.map(word => /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`);
  return `pdawl run ${quoted.join(' ')}`;
}

/** The same in Python. @param {Run} run */
export function python(run) {
  const [, place, target] = words(run);
  const text = (/** @type {string} */ value) => JSON.stringify(value);
  const value = (/** @type {string | true | string[]} */ of) => of === true ? 'True'
    : Array.isArray(of) ? `[${of.map(text).join(', ')}]` : /^(0|[1-9]\d*)$/.test(of) ? of : text(of);
  const given = [`${place.slice(2)}=${text(target)}`, ...[...run.options].map(([name, of]) =>
    `${name.replace(/-/g, '_')}=${value(of)}`)];
  return `import pdawl\nreport = pdawl.run(${[text(run.workload), ...given].join(', ')})`;
}

/** Asks the program. @param {string} path @param {any} body @param {AbortSignal} [signal]
 * @returns {Promise<any>} */
export async function ask(path, body, signal) {
  const answer = await fetch(path, body === undefined ? { signal }
    : { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body), signal });
  if (path === 'drawing' && answer.ok) return answer.text();
  const read = await answer.json();
  if (!answer.ok) throw new Error(read.error);
  return read;
}
