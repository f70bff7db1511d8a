// The page, driven by clicks and keys against a real server with live runs.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { begin, call, check, enter, hold, openHouse, release, startServer, stopServer, until, visit } from './house.mjs';

let house;
let team;
let page;

before(async () => {
  house = await openHouse();
  team = await begin(house, { goal: 'Print Roman numerals', to: 'lead' });
  page = await visit(house);
});

after(async () => {
  for (const agent of ['coder', 'tester']) release(house, agent);
  await house.close();
});

const card = (name) => page.locator(`.card[data-agent="${name}"]`);

test('the code leaves the address, and the list shows what needs the person first', async () => {
  await page.getByRole('region', { name: 'Needs you' }).getByRole('link', { name: /Print Roman numerals/ }).waitFor();
  assert.ok(!page.url().includes('code='), page.url());
  // The tester asks for nothing before it is released, so that `n` has one place to go to.
  const second = await begin(house, { goal: 'Another goal', to: 'tester' });
  await page.locator(`[data-run="${second}"]`).waitFor();
  const order = await page.locator('section h2').allTextContents();
  assert.match(order[0], /^Needs you/);
});

test('search finds runs by words', async () => {
  await page.keyboard.press('/');
  await page.keyboard.type('another');
  await page.locator(`[data-run="${team}"]`).waitFor({ state: 'detached' });
  assert.equal(await page.locator('.run-row').count(), 1);
  await page.getByRole('searchbox').fill('');
  await page.locator(`[data-run="${team}"]`).click();
  await card('coder').waitFor();
  assert.match(page.url(), new RegExp(`/r/${team}$`));
});

test('the graph shows status, and output streams into the inspector', async () => {
  await page.locator('.card[data-agent="coder"][data-status="streaming"]').waitFor();
  await card('coder').click();
  await page.getByRole('log', { name: 'Output as it streams' }).getByText('coder begins <b>now</b>').waitFor();
  assert.match(page.url(), new RegExp(`/r/${team}/a/coder$`));
});

test('a card stays where it is dragged, over a reload', async () => {
  // The graph fits itself beside the inspector, which opened just now: a card may move away from under the pointer.
  await until('a card that is held', async () => {
    const drag = await card('tester').boundingBox();
    await page.mouse.move(drag.x + 60, drag.y + 20);
    await page.mouse.down();
    await page.mouse.move(drag.x + 110, drag.y + 60, { steps: 5 });
    const held = await page.locator('.react-flow__node.dragging[data-id="tester"]').count();
    await page.mouse.up();
    return held;
  });
  const placed = () => page.evaluate((run) => localStorage.getItem(`swarm:places:${run}`), team);
  const kept = await placed();
  assert.ok(JSON.parse(kept).tester, kept);
  await page.reload();
  await card('tester').waitFor();
  const style = await page.locator('.react-flow__node[data-id="tester"]').getAttribute('style');
  const { x, y } = JSON.parse(kept).tester;
  assert.ok(style.includes(`translate(${x}px, ${y}px)`) || style.includes(`translate(${x}px,${y}px)`), `${style} ${kept}`);
});

test('n goes to the approval, an edit is granted, and the agent joins the graph', async () => {
  await page.goto(`${house.base}/`);
  await page.getByRole('region', { name: 'Needs you' }).waitFor();
  await page.keyboard.press('n');
  const need = page.getByRole('article', { name: /Approval/ });
  await need.waitFor();
  await page.waitForFunction(() => document.activeElement?.classList.contains('need'));
  assert.match(page.url(), new RegExp(`/r/${team}/`));
  await need.getByText('wants to bring in @helper').waitFor();
  await need.getByRole('button', { name: 'Edit' }).click();
  const text = await need.getByRole('textbox').inputValue();
  await need.getByRole('textbox').fill(text.replace('helper', 'reader'));
  await need.getByRole('button', { name: 'Approve as edited' }).click();
  await card('reader').waitFor();
  await need.waitFor({ state: 'detached' });
});

test('a message is queued from the inspector, and an envelope is seen travelling', async () => {
  await card('coder').click();
  await page.keyboard.press('m');
  await page.keyboard.type('Use Go');
  await page.getByRole('button', { name: 'Queue' }).click();
  await page.getByText('coder reads it in its next turn.').waitFor();
  const seen = page.waitForSelector('[data-flight="coder tester"]', { state: 'attached' });
  release(house, 'coder');
  await seen;
  await page.locator('.card[data-agent="tester"][data-status="streaming"]').waitFor();
});

test('one selection goes through graph, timeline, conversation and board', async () => {
  hold(house, 'coder');
  await page.keyboard.press('2');
  const bar = page.getByRole('button', { name: /^Turn coder\/1\/1/ });
  await bar.click();
  await page.locator('.turn-bar.selected').waitFor();
  assert.match(page.url(), /\/t\/coder\/1\/1\?view=timeline$/);
  await page.getByRole('img', { name: /waited for mail; coder wrote: roman.go is written/ }).waitFor({ state: 'attached' });
  await page.keyboard.press('3');
  await page.getByRole('button', { name: /lead to coder, (read in a prompt|answered): Write roman.go/ }).click();
  await page.getByRole('tabpanel').getByText('raw envelope').first().waitFor();
  await page.keyboard.press('4');
  await page.getByText('Go, and the standard library only.').waitFor();
  await page.getByRole('button', { name: /coder/, pressed: true }).waitFor();
});

test('the inspector has prompt with origins and hash, tools, mail and usage', async () => {
  await page.goto(`${house.base}/r/${team}/t/lead/1/1`);
  await page.getByRole('tab', { name: 'Prompt' }).click();
  await page.locator('.span').first().waitFor();
  const turn = await call(house, 'GET', `/api/v1/runs/${team}/turns/lead/1/1`);
  assert.equal(await page.locator('.hash').textContent(), turn.prompt.slice(0, 12));
  assert.ok((await page.locator('.span').allTextContents()).join('').includes('Print Roman numerals'));
  await page.getByRole('tab', { name: 'Tools' }).click();
  await page.getByText('spawn_node').waitFor();
  await page.getByRole('tab', { name: 'Mail' }).click();
  await page.getByRole('heading', { name: /Outgoing/ }).waitFor();
  const sent = page.locator('.envelope-item', { hasText: 'lead → coder' });
  await sent.getByText('raw envelope').click();
  await sent.getByText('"fromNodeId": "lead"').waitFor();
  await page.getByRole('tab', { name: 'Usage' }).click();
  await page.getByRole('columnheader', { name: 'this turn' }).waitFor();
});

test('the palette pauses and resumes the run, and interrupts an agent', async () => {
  await page.goto(`${house.base}/r/${team}/a/tester`);
  await page.getByRole('button', { name: 'Pause' }).first().waitFor();
  await palette('pause the run');
  await page.locator('.top .badge', { hasText: /paus/ }).waitFor();
  await palette('resume the run');
  await page.locator('.top .badge', { hasText: 'running' }).waitFor();
  await palette('interrupt tester');
  await page.keyboard.type('Stop that');
  await page.keyboard.press('Enter');
  await page.getByText("tester's turn is cut. Its next one begins with your message.").waitFor();
  await until('the cut turn', async () => (await call(house, 'GET', `/api/v1/runs/${team}/turns?agent=tester`)).turns.length > 1);
});

test('a reset cuts the turn of an agent and begins it anew', async () => {
  await page.goto(`${house.base}/r/${team}/a/tester`);
  await page.locator('.card[data-agent="tester"][data-status="streaming"]').waitFor();
  const cut = await page.getByRole('combobox', { name: 'Turn' }).inputValue();
  await page.locator('.inspector-head').getByRole('button', { name: 'Reset' }).click();
  await page.getByText('tester begins its turn anew, in a new session.').waitFor();
  const turn = page.getByRole('combobox', { name: 'Turn' });
  await turn.locator(`option[value="${cut}"]`, { hasText: 'cancelled' }).waitFor({ state: 'attached' });
  await until('the turn that was begun anew', async () => (await turn.inputValue()) !== cut);
  await page.locator('.card[data-agent="tester"][data-status="streaming"]').waitFor();
  await page.getByRole('log', { name: 'Output as it streams' }).getByText('tester begins').waitFor();
  const { actions } = (await call(house, 'GET', `/api/v1/runs/${team}`)).run;
  assert.ok(actions.some((one) => one.word === 'reset' && one.target === 'tester'), JSON.stringify(actions));
});

test('the palette resets, stops and starts agents', async () => {
  const turn = await page.getByRole('combobox', { name: 'Turn' }).inputValue();
  await palette('reset tester');
  await until('the turn that was begun anew', async () => (await page.getByRole('combobox', { name: 'Turn' }).inputValue()) !== turn);
  await page.goto(`${house.base}/r/${team}/a/hostile`);
  await page.locator('.inspector-head').getByRole('button', { name: 'Stop' }).waitFor();
  await palette('stop hostile');
  await page.locator('.card[data-agent="hostile"][data-status="cancelled"]').waitFor();
  await palette('start hostile');
  await page.locator('.card[data-agent="hostile"]:not([data-status="cancelled"])').waitFor();
});

test('the focus goes back to where it was when the palette or a dialog closes', async () => {
  for (const [button, close] of [['Open the palette', undefined], ['Keys', 'Close']]) {
    await page.getByRole('button', { name: button }).click();
    if (close) await page.getByRole('dialog').getByRole('button', { name: close }).click();
    else await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    assert.equal(await page.evaluate(() => document.activeElement.ariaLabel ?? document.activeElement.textContent.match(/Open the palette/)?.[0]), button);
  }
});

async function palette(words) {
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Do anything' }).fill(words);
  await page.keyboard.press('Enter');
}

test('agents are paused and resumed, and a run is started from the page', async () => {
  await page.goto(`${house.base}/r/${team}/a/hostile`);
  const head = page.locator('.inspector-head');
  await head.getByRole('button', { name: 'Pause' }).click();
  await head.getByText('is paused').waitFor();
  await head.getByRole('button', { name: 'Resume' }).click();
  await head.getByRole('button', { name: 'Pause' }).waitFor();
  await page.goto(house.base);
  await page.getByRole('button', { name: 'Start a run' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Start', exact: true }).click();
  await page.waitForURL(/\/r\/20/);
  await page.locator('.card[data-agent="plan"]').waitFor();
  await page.locator('.react-flow__edge').first().waitFor({ state: 'attached' });
  assert.equal(await page.locator('.edge-label').count(), 0, 'an ordinary dependency has no label');
  assert.notEqual(page.url().split('/r/')[1], team);
  await page.getByRole('button', { name: 'Stop' }).first().click();
  await page.locator('.top .badge', { hasText: 'cancelled' }).waitFor();
});

const elsewhere = (run) => page.waitForURL((url) => url.pathname.startsWith('/r/20') && !url.pathname.includes(run));

test('a failed run is retried in a new one, and forked with an edited prompt', async () => {
  const run = await begin(house, { pipeline: 'broken' });
  await page.goto(`${house.base}/r/${run}`);
  await page.locator('.top .badge', { hasText: 'failed' }).waitFor();
  await page.getByRole('button', { name: 'Retry' }).click();
  await elsewhere(run);
  await page.getByText('What failed is tried again.').waitFor();
  await page.locator('.top .badge', { hasText: 'failed' }).waitFor();
  const second = new URL(page.url()).pathname.split('/')[2];
  await palette('retry what failed');
  await page.waitForURL((url) => url.pathname.startsWith('/r/20') && !url.pathname.includes(run) && !url.pathname.includes(second));
  await page.goto(`${house.base}/r/${run}/t/sketch/1/1`);
  await page.getByRole('button', { name: 'Fork' }).waitFor();
  await palette('fork the run');
  const dialog = page.getByRole('dialog', { name: 'Fork from sketch/1/1' });
  await dialog.getByRole('textbox').fill('Plan it in blue.');
  await check(page, 'the dialog that forks');
  await dialog.getByRole('button', { name: 'Fork' }).click();
  await elsewhere(run);
  const fork = new URL(page.url()).pathname.split('/')[2];
  await until('the forked turn', async () => (await call(house, 'GET', `/api/v1/runs/${fork}`)).run.status === 'failed');
  const { prompt_text: prompt } = await call(house, 'GET', `/api/v1/runs/${fork}/turns/sketch/1/1`);
  assert.ok(prompt.includes('Plan it in blue.'), prompt);
});

test('the times of a short run differ, in the timeline', async () => {
  const run = await begin(house, { pipeline: 'broken' });
  await page.goto(`${house.base}/r/${run}?view=timeline`);
  await page.locator('.top .badge', { hasText: 'failed' }).waitFor();
  await page.locator('.tick text').nth(2).waitFor();
  const times = await page.locator('.tick text').allTextContents();
  assert.equal(new Set(times).size, times.length, times.join(' '));
  // Ctrl and wheel zoom, and what is under the pointer stays there.
  const bar = page.getByRole('button', { name: /^Turn fails\/1\/1/ });
  const middle = async () => (({ x, width }) => x + width / 2)(await bar.locator('rect').first().boundingBox());
  const before = await middle();
  const wide = () => page.locator('.gantt svg').evaluate((svg) => svg.width.baseVal.value);
  const whole = await wide();
  await bar.hover();
  await page.keyboard.down('Control');
  await page.mouse.wheel(0, -100);
  await page.keyboard.up('Control');
  await until('a wider chart', async () => (await wide()) > whole * 1.1);
  assert.ok(Math.abs((await middle()) - before) < 12, `${before} ${await middle()}`);
});

test('two copies of a task stand beside each other', async () => {
  const run = await begin(house, { pipeline: 'twins' });
  await page.goto(`${house.base}/r/${run}/t/draft.1/1/1?view=review`);
  await page.locator('.top .badge', { hasText: 'completed' }).waitFor();
  await page.getByRole('combobox', { name: 'beside' }).selectOption('draft.2/1/1');
  for (const turn of ['draft.1/1/1', 'draft.2/1/1']) await page.getByRole('region', { name: turn }).getByLabel(`Output of ${turn}`).getByText('the first draft').waitFor();
});

test('on a phone a past moment and the way back are in sight, also beside an agent', async () => {
  const phone = await visit(house, `/r/${team}/a/lead?at=4`, { viewport: { width: 360, height: 780 } });
  await phone.getByText('event 4 of').waitFor();
  await phone.getByRole('tab', { name: 'Output' }).waitFor();
  await check(phone, 'a past moment on a phone');
  assert.ok((await phone.evaluate(() => document.documentElement.scrollWidth)) <= 360);
  await phone.getByRole('button', { name: 'Now', exact: true }).click();
  await phone.getByText('event 4 of').waitFor({ state: 'detached' });
  assert.match(phone.url(), /\/a\/lead$/);
  await phone.context().close();
});

test('times are those of the reader', async () => {
  const far = await visit(house, `/r/${team}?view=conversation`, { timezoneId: 'Pacific/Auckland', locale: 'en-GB' });
  await far.locator('.message-time').first().waitFor();
  const { mail } = await call(house, 'GET', `/api/v1/runs/${team}/mail`);
  assert.equal(await far.locator('.message-time').first().textContent(), new Date(mail[0].createdAt).toLocaleTimeString('en-GB', { timeZone: 'Pacific/Auckland' }));
  await far.context().close();
});

test('the scrubber shows a past moment', async () => {
  await page.goto(`${house.base}/r/${team}?at=4`);
  await page.getByText('the past, event 4').waitFor();
  await card('lead').waitFor();
  assert.equal(await card('reader').count(), 0);
  await until('no turn at event 4', async () => (await page.locator('.card[data-status="streaming"]').count()) === 0);
  await page.getByRole('button', { name: 'Now', exact: true }).click();
  await page.getByText('the past, event 4').waitFor({ state: 'detached' });
  await page.locator('.live-note').waitFor();
  await card('reader').waitFor();
});

test('a comment on a line of a diff becomes a message to its author', async () => {
  await page.goto(`${house.base}/r/${team}/t/coder/1/1?view=review`);
  const line = page.locator('.review .diff-line', { hasText: 'package main' }).last();
  await line.hover();
  await page.locator('.review .diff-add-widget:visible').first().click();
  await page.getByRole('textbox', { name: 'Comment on this line' }).fill('Name the package roman');
  await page.getByRole('button', { name: 'Comment', exact: true }).click();
  await page.getByRole('button', { name: 'Send 1 comment to coder' }).click();
  await page.getByRole('status').getByRole('link', { name: 'Show its receipt' }).click();
  await page.locator('.message.selected[aria-label*="user to coder, stored, not read yet: Review of your changes"]').waitFor();
  assert.match(page.url(), /\/m\/m-[0-9a-f]+\?view=conversation$/);
  const { mail } = await call(house, 'GET', `/api/v1/runs/${team}/mail?agent=coder`);
  assert.ok(mail.some((one) => /roman\.go:\d+\n> package main .*\nName the package roman$/.test(one.payload.message)), JSON.stringify(mail));
});

test('two attempts stand beside each other', async () => {
  const run = await begin(house, { pipeline: 'drafts' });
  await page.goto(`${house.base}/r/${run}/t/draft/1/1?view=review`);
  await page.locator('.top .badge', { hasText: 'completed' }).waitFor();
  await page.getByRole('combobox', { name: 'beside' }).selectOption('draft/1/2');
  for (const [turn, word] of [['draft/1/1', 'first'], ['draft/1/2', 'second']]) {
    const side = page.getByRole('region', { name: turn });
    await side.getByLabel(`Output of ${turn}`).getByText(`the ${word} draft`).waitFor();
    await side.getByText('No file was changed.').waitFor();
  }
  const [left, right] = await Promise.all(['draft/1/1', 'draft/1/2'].map((turn) => page.getByRole('region', { name: turn }).boundingBox()));
  assert.ok(left.x + left.width <= right.x && Math.abs(left.y - right.y) < 2, JSON.stringify([left, right]));
  await check(page, 'two attempts');
});

test('an exported file opens without a server', async () => {
  const answer = await page.evaluate(async (run) => (await fetch(`/api/v1/runs/${run}/export?format=html`)).text(), team);
  const file = join(house.root, 'run.html');
  writeFileSync(file, answer);
  const context = await house.browser.newContext({ viewport: { width: 1280, height: 800 } });
  const alone = await context.newPage();
  const asked = [];
  alone.on('request', (request) => request.url().startsWith('http') && asked.push(request.url()));
  await alone.goto(`file://${file}`);
  await alone.locator('.card[data-agent="coder"]').click();
  await alone.getByRole('combobox', { name: 'Turn' }).selectOption('coder/1/1');
  await alone.getByText('coder begins <b>now</b>').first().waitFor();
  assert.deepEqual(asked, []);
  await context.close();
});

test('a lost server and a reload lead back to the same picture', async () => {
  await page.goto(`${house.base}/r/${team}/a/coder`);
  await card('coder').waitFor();
  await stopServer(house);
  await page.getByText('connection lost').waitFor();
  await startServer(house);
  await page.getByText('needs a new address').waitFor();
  await enter(house, page, '/');
  const left = page.getByRole('region', { name: 'Interrupted' }).locator(`[data-run="${team}"]`);
  await left.waitFor();
  assert.equal(await left.locator('.run-time').textContent(), '', 'no clock of a run that nobody drives');
  await left.click();
  await card('coder').click();
  const other = await visit(house, `/r/${team}`);
  await other.clock.install();
  await other.reload();
  const clock = other.locator('.top-fact').last();
  const stands = await clock.textContent();
  await other.clock.fastForward('02:00:00');
  await other.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  assert.equal(await clock.textContent(), stands);
  await other.context().close();
  await page.getByRole('button', { name: 'Resume' }).first().click();
  await page.locator('.card[data-agent="tester"]').waitFor();
});

test('axe finds nothing wrong, at three widths and in both themes', async () => {
  for (const [width, colorScheme] of [[360, 'dark'], [1280, 'light'], [1280, 'dark'], [2880, 'light']]) {
    const one = await visit(house, '/', { colorScheme, viewport: { width, height: 900 } });
    await one.locator('.run-row').first().waitFor();
    await check(one, `runs ${width} ${colorScheme}`);
    for (const view of ['graph', 'timeline', 'conversation', 'board']) {
      if ((width !== 1280 || colorScheme === 'dark') && view !== 'graph') continue;
      await one.goto(`${house.base}/r/${team}/a/coder?view=${view}`);
      await one.getByRole('tab', { name: 'Output' }).waitFor();
      await check(one, `${view} ${width} ${colorScheme}`);
      const wide = await one.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `${view} at ${width} is ${wide} pixels too wide`);
    }
    assert.deepEqual(one.problems, []);
    await one.context().close();
  }
});
