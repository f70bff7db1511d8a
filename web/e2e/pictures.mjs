// Makes the pictures of docs/inspector.md: node web/e2e/pictures.mjs PROGRAM FOLDER
// A team works in front of a real server. A small server plays its models, so that every picture is the same each time.
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const [program, folder] = process.argv.slice(2).map((one) => resolve(one));
process.env.SWARM_BIN = program;
const { begin, call, openHouse, until, visit } = await import('./house.mjs');

const code = `I begin with the table of values, from the largest to the smallest.

func Roman(n int) string {
	var b strings.Builder
	for _, one := range table {
		for n >= one.value {
			b.WriteString(one.sign)
			n -= one.value
		}
	}
	return b.String()
}

The loop takes the largest value that still fits. 4, 9, 40 and the like are rows of their own, so`;

// What each model says: first the calls of a tool, then a text. A text that is open streams on.
const parts = {
  'gpt-6.1-sol': { calls: [['tester', 'roman.go is written. Please test 4, 9, 1994 and 3999.']], text: code, open: true },
  'gpt-6.1-terra': { calls: [['coder', 'Roman(0) returns an empty text. Is that meant?']], text: 'I write a table of cases: 1 is I, 4 is IV, 9 is IX, 40 is XL, 1994 is MCMXCIV, 3999 is', open: true },
  'gpt-6-luna': { calls: [], text: 'README.md says how to install the program, and has three examples.' },
};

/** openModel plays the models, by their names. */
async function openModel() {
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const some of request) body += some;
    const { model, messages } = JSON.parse(body);
    const part = parts[model];
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    const write = (choice, more = {}) => response.write(`data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model, choices: [{ index: 0, finish_reason: null, ...choice }], ...more })}\n\n`);
    const end = (finish_reason, tokens) => {
      write({ delta: {}, finish_reason });
      response.end(`data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model, choices: [], usage: { prompt_tokens: tokens, completion_tokens: 640, total_tokens: tokens + 640 } })}\n\ndata: [DONE]\n\n`);
    };
    const called = messages.some((one) => one.role === 'tool');
    if (part.calls.length > 0 && !called) {
      const calls = part.calls.map(([to, message], index) => ({ index, id: `c${index}`, type: 'function', function: { name: 'send_handoff', arguments: JSON.stringify({ to, message }) } }));
      write({ delta: { role: 'assistant', tool_calls: calls } });
      return end('tool_calls', 41_200);
    }
    for (const word of part.text.split(/(?<=\s)/)) write({ delta: { content: word } });
    if (!part.open) end('stop', 96_400);
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return { url: `http://127.0.0.1:${server.address().port}/v1`, close: () => (server.closeAllConnections(), server.close()) };
}

function projectOf(model) {
  const dir = mkdtempSync(join(tmpdir(), 'swarm-pictured-'));
  mkdirSync(join(dir, 'swarm'));
  writeFileSync(
    join(dir, 'swarm/swarm.yaml'),
    `version: "1"
provider: scripted
providers:
  scripted: {kind: script, script: says.yaml}
  openai: {kind: openai, base_url: "${model.url}", models: {medium: gpt-6.1-terra}}
agents:
  lead: {permissions: {orchestrate: true, spawn: true}}
  coder: {provider: openai, model: gpt-6.1-sol}
  tester: {provider: openai, model: gpt-6.1-terra}
  writer: {provider: openai, model: gpt-6-luna}
edges: ["lead <-> coder", "lead <-> tester", "lead <-> writer", "coder <-> tester"]
tasks:
  plan: {agent: lead, prompt-string: Plan it}
  build: {agent: lead, prompt-string: Build it, depends_on: [plan]}
  publish: {agent: lead, prompt-string: Publish it, depends_on: [build]}
  french: {agent: tester, prompt-string: Translate README.md}
pipelines:
  release: {tasks: [plan, build, publish]}
  changelog: {tasks: [plan, build]}
  translate: {tasks: [french]}
`,
  );
  writeFileSync(
    join(dir, 'swarm/says.yaml'),
    `- agent: lead
  iteration: 1
  say: The coder begins, the writer writes the README, and I have asked for a reviewer.
  call:
    - {tool: send_handoff, args: {to: coder, message: "Write roman.go, with Roman(n int) string."}}
    - {tool: send_handoff, args: {to: writer, message: "Write README.md for the program."}}
    - {tool: publish_data, args: {topic: decisions, data: "Go, and the standard library only."}}
    - {tool: spawn_node, args: {name: reviewer, provider: openai, instructions: "Review roman.go"}}
- {agent: lead, say: Thanks.}
- {task: plan, say: planned}
- {task: build, say: built}
- {task: publish, say: the registry refuses the key, exit: 1}
`,
  );
  return dir;
}

const sizes = { phone: { width: 360, height: 780 }, graph: { width: 1280, height: 800 }, '4k': { width: 3840, height: 2160 } };

/** shoot keeps a picture. One of a 4K screen is kept at half its size. */
async function shoot(page, name) {
  await page.evaluate(() => document.fonts.ready);
  const path = join(folder, `inspector-${name}.png`);
  await page.screenshot({ path, animations: 'disabled' });
  console.log(`${path}  ${Math.ceil(statSync(path).size / 1024)} KB`);
}

const model = await openModel();
const project = projectOf(model);
const house = await openHouse(project);
try {
  mkdirSync(folder, { recursive: true });
  const team = await begin(house, { goal: 'Write a program that prints Roman numerals', to: 'lead' });
  const release = await begin(house, { pipeline: 'release' });
  await begin(house, { pipeline: 'changelog' });
  await begin(house, { pipeline: 'translate' });
  await until('the end of the release', async () => (await call(house, 'GET', `/api/v1/runs/${release}`)).run.status === 'failed');
  await until('the tester', async () => (await call(house, 'GET', `/api/v1/runs/${team}/nodes`)).nodes.filter((one) => one.status === 'streaming').length === 2);
  for (const [name, viewport] of Object.entries(sizes)) {
    for (const colorScheme of ['light', 'dark']) {
      const options = { viewport, colorScheme, deviceScaleFactor: viewport.width > 2000 ? 0.5 : 1, timezoneId: 'UTC', reducedMotion: 'reduce' };
      const page = await visit(house, `/r/${team}${name === 'phone' ? '' : '/a/coder'}`, options);
      await page.locator('.card[data-agent="tester"][data-status="streaming"]').waitFor();
      await page.locator('.live-note').waitFor();
      if (name !== 'phone') await page.getByRole('log', { name: 'Output as it streams' }).getByText('rows of their own').waitFor();
      await until('a graph that is in its place', () => still(page));
      await shoot(page, colorScheme === 'light' ? name : `${name}-dark`);
      if (name === 'graph' && colorScheme === 'light') {
        await page.keyboard.press('2');
        await page.locator('.turn-bar').first().waitFor();
        await page.locator('.lead').first().waitFor({ state: 'attached' });
        await shoot(page, 'timeline');
        await page.goto(house.base);
        await page.locator('.run-row').nth(3).waitFor();
        await shoot(page, 'runs');
      }
      await page.context().close();
    }
  }
} finally {
  model.close();
  await house.close();
  rmSync(project, { recursive: true, force: true });
}
process.exit(0);

/** still is whether the graph has not moved between two frames. */
async function still(page) {
  const place = () => page.locator('.react-flow__viewport').getAttribute('style');
  const before = await place();
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  return before === (await place());
}
