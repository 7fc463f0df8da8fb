// The program, the browser, and a page that the program serves. `PDAWL` is the program, `CHROMIUM`
// the browser.

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { chromium } from 'playwright-core';

/** The program, of this build if none is named. */
export const program = build => resolve(process.env.PDAWL ?? `../../target/${build}/pdawl`);

/** The server, and its page's address. */
export async function serve(program) {
  const server = spawn(program, ['ui', '--no-open', '--format', 'json'], { stdio: ['ignore', 'pipe', 'ignore'] });
  let text = '';
  for await (const part of server.stdout) {
    text += part;
    if (text.includes('}')) break;
  }
  return { server, address: JSON.parse(text).address };
}

const BROWSERS = ['chromium', 'chromium-browser', 'google-chrome'].map(name => `/usr/bin/${name}`);
export const browse = () => chromium.launch({ executablePath: process.env.CHROMIUM ?? BROWSERS.find(existsSync), args: ['--no-sandbox'] });
