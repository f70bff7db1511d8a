// A house is a real `swarm serve` in an empty home, with a browser that has come in by a printed address.
import { AxeBuilder } from '@axe-core/playwright';
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request as ask } from 'node:http';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const here = dirname(fileURLToPath(import.meta.url));
const program = resolve(process.env.SWARM_BIN ?? join(here, '../../bin/swarm'));
const token = 'token-of-the-tests-of-the-page';
const browsers = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const flags = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];

/** openHouse starts a server in a copy of a project, and a browser. */
export async function openHouse(project = join(here, 'project')) {
  const root = mkdtempSync(join(tmpdir(), 'swarm-page-'));
  const dir = join(root, 'project');
  mkdirSync(join(root, 'home'));
  cpSync(project, dir, { recursive: true });
  const env = { PATH: `${dirname(program)}:${process.env.PATH}`, HOME: join(root, 'home'), SWARM_HOME: join(root, 'home/.swarm'), SWARM_TOKEN: token };
  const house = { root, dir, env, server: undefined, port: 0 };
  await startServer(house);
  house.browser = await chromium.launch({ executablePath: browsers.find((one) => existsSync(one)), args: flags });
  house.close = async () => {
    await house.browser.close();
    await stopServer(house);
    rmSync(root, { recursive: true, force: true, maxRetries: 3 });
  };
  return house;
}

/** startServer starts `swarm serve`, again on the same port if it ran before. */
export async function startServer(house) {
  const child = spawn(program, ['serve', '--listen', `127.0.0.1:${house.port}`, '--json'], { cwd: house.dir, env: house.env, stdio: ['ignore', 'pipe', 'pipe'] });
  house.server = child;
  house.ended = new Promise((done) => child.once('exit', done));
  house.base = await new Promise((found, failed) => {
    let said = '';
    const hear = (text) => {
      said += text;
      const match = /http:\/\/127\.0\.0\.1:(\d+)/.exec(said);
      if (match) {
        house.port = Number(match[1]);
        found(match[0]);
      }
    };
    child.stdout.on('data', hear);
    child.stderr.on('data', hear);
    child.once('exit', (code) => failed(new Error(`swarm serve ended with ${code}: ${said}`)));
  });
}

export async function stopServer(house) {
  house.server.kill('SIGINT');
  await house.ended;
}

/** call asks the server as a program does, with the token. */
export async function call(house, method, path, body) {
  const answer = await fetch(house.base + path, {
    method,
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: body && JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return text ? JSON.parse(text) : undefined;
}

/** begin starts a run and returns its id. */
export const begin = async (house, wanted) => (await call(house, 'POST', '/api/v1/runs', wanted)).run;

/** release lets an agent of the gated program go on. */
export const release = (house, agent) => writeFileSync(join(house.dir, `go-${agent}`), '');
export const hold = (house, agent) => rmSync(join(house.dir, `go-${agent}`), { force: true });

/** visit opens a page with a fresh code, as a person does with the printed address. */
export async function visit(house, path = '/', options = {}) {
  const context = await house.browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'no-preference', ...options });
  const page = await context.newPage();
  page.problems = [];
  page.on('pageerror', (problem) => page.problems.push(`page: ${problem.message}`));
  page.on('console', (message) => message.type() === 'error' && page.problems.push(`console: ${message.text()}`));
  page.on('dialog', (dialog) => dialog.accept());
  page.setDefaultTimeout(15_000);
  await useFolder(page);
  await enter(house, page, path);
  return page;
}

/** openWire is a network between a browser and a server that can be cut, or carry nothing more, or lose some requests. */
export async function openWire() {
  const open = new Set();
  let state = 'whole';
  let lossy; // requests whose addresses match it are never answered
  const lost = [];
  const proxy = createServer((request, response) => {
    const { method, url, headers } = request;
    if (lossy?.test(url)) return void lost.push(url);
    const onward = ask(url, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.on('data', (bytes) => state === 'whole' && response.write(bytes));
      answer.on('end', () => response.end());
      answer.on('error', () => response.destroy());
    });
    onward.on('error', () => response.destroy());
    response.on('close', () => onward.destroy());
    request.pipe(onward);
  });
  proxy.on('connection', (socket) => {
    if (state === 'cut') return socket.destroy();
    open.add(socket);
    socket.on('close', () => open.delete(socket));
    socket.on('error', () => {});
  });
  await new Promise((done) => proxy.listen(0, '127.0.0.1', done));
  return {
    options: { proxy: { server: `http://127.0.0.1:${proxy.address().port}`, bypass: '<-loopback>' } },
    cut() {
      state = 'cut';
      for (const socket of open) socket.destroy();
    },
    deafen: () => (state = 'deaf'),
    lost,
    lose: (some) => (lossy = some),
    mend() {
      state = 'whole';
      lossy = undefined;
    },
    close: () => proxy.close(),
  };
}

/** useFolder takes the page from a folder instead of the program, if SWARM_TEST_DIST names one: to try a page without `go build`. */
async function useFolder(page) {
  const dist = process.env.SWARM_TEST_DIST;
  if (!dist) return;
  await page.route(/\/assets\//, (route) => route.fulfill({ path: join(dist, 'assets', basename(new URL(route.request().url()).pathname)) }));
  await page.route(
    (url) => url.pathname === '/' || url.pathname.startsWith('/r/'),
    async (route) => {
      const answer = await route.fetch();
      await route.fulfill({ response: answer, path: join(dist, 'index.html') });
    },
  );
}

export async function enter(house, page, path) {
  const { url } = await call(house, 'POST', '/api/v1/codes', { path: path.split('?')[0] });
  const address = new URL(url);
  address.search = path.includes('?') ? path.slice(path.indexOf('?')) : '';
  await page.goto(address.href);
}

/** until waits for a condition about the server. */
export async function until(what, condition) {
  for (let tries = 0; tries < 300; tries++) {
    const found = await condition();
    if (found) return found;
    await new Promise((done) => setTimeout(done, 50));
  }
  throw new Error(`it never came: ${what}`);
}

/** check fails if axe finds something on a page that keeps people out. */
export async function check(page, name) {
  const { violations } = await new AxeBuilder({ page }).analyze();
  const found = violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => `${n.target} ${n.any[0]?.message ?? ''}`).join(' | ')}`);
  assert.deepEqual(found, [], name);
}
