// Draws the pictures of docs/ui.md: node pictures.js
// `PDAWL` is the program, `CHROMIUM` the browser.

import { browse, program, serve } from './served.js';

const PROGRAM = program('release');

const { server, address } = await serve(PROGRAM);
const browser = await browse();
const page = await (await browser.newContext({ viewport: { width: 1240, height: 880 } })).newPage();
const encoded = line => line.split(' ').map(encodeURIComponent).join('+');
async function show(run, beside) {
  await page.goto(`${address}#run=${encoded(run)}${beside ? `&beside=${encoded(beside)}` : ''}`);
  await page.waitForFunction(words => document.body.dataset.compared === words, JSON.stringify(run.split(' ')));
}
const save = (node, name) => node.screenshot({ path: `../../docs/${name}` });

await show('cholesky --machine v100x2,gpu1.speed=0.5x --size 8192');
await save(page, 'ui.png');

await show('stencil --machine k40 --size 8192 --fault gpu0:slow:2@10', 'stencil --machine k40 --size 8192');
await save(page.locator('#charts'), 'ui-beside.png');

await show('cholesky --machine v100x2 --size 8192 --policy dmdar');
await page.getByRole('button', { name: 'run each of them' }).click();
await page.waitForFunction(() => Number(document.body.dataset.policies) === 11);
await save(page.locator('#compare'), 'ui-policies.png');

await show('stencil --machine k40 --size 8192 --strategy dawl');
await page.getByLabel('from', { exact: true }).fill('512');
await page.getByLabel('to', { exact: true }).fill('8192');
await page.getByLabel('compared with').selectOption('gpu0 alone');
await page.getByLabel('run the sweep').click();
await page.waitForFunction(() => document.body.dataset.swept !== undefined);
await save(page.locator('#sweep'), 'ui-sweep.png');

await browser.close();
server.kill('SIGINT');
