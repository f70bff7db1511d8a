// Stepping in: approvals and questions, with a compose file that has agents only.
import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { call, check, openHouse, until, visit } from './house.mjs';

let house;
let page;
let team;

before(async () => {
  house = await openHouse(join(dirname(fileURLToPath(import.meta.url)), 'asking'));
  page = await visit(house);
});

after(() => house.close());

const card = (name) => page.locator(`.card[data-agent="${name}"]`);
const need = () => page.getByRole('article', { name: /^Approval/ });

test('a file without tasks starts teams, and the dialog says what was refused', async () => {
  await page.getByRole('button', { name: 'Start a run' }).click();
  const dialog = page.getByRole('dialog', { name: 'Start a run' });
  await dialog.getByRole('radio', { name: 'Team', checked: true }).waitFor();
  await dialog.getByRole('radio', { name: 'Pipeline' }).waitFor({ state: 'detached' });
  await check(page, 'the dialog that starts a run');
  await dialog.getByRole('radio', { name: 'Line' }).click();
  await dialog.getByRole('textbox').fill('@nobody Help');
  await dialog.getByRole('button', { name: 'Start', exact: true }).click();
  await dialog.getByRole('alert').getByText('nobody').first().waitFor();
  await dialog.getByRole('radio', { name: 'Team' }).click();
  await dialog.getByRole('textbox').fill('Deploy the house');
  await dialog.getByRole('button', { name: 'Start', exact: true }).click();
  await page.waitForURL(/\/r\/20/);
  team = page.url().split('/r/')[1];
});

test('an agent that wants to use a tool waits for you, on its card and in the timeline', async () => {
  await need().getByText(/^wants to use deploy.*production/).waitFor();
  await need().getByLabel('Input of deploy').waitFor();
  await need().getByText(/^· asked /).waitFor();
  await card('deployer').getByText('waits for you').waitFor();
  assert.equal(await card('deployer').getAttribute('data-status'), 'blocked');
  await card('deployer').click();
  await page.locator('.inspector-head .badge', { hasText: 'waits for you' }).waitFor();
  const why = await page.locator('.inspector-head .why').textContent();
  assert.match(why, /waits for you: may it use deploy.*production.*\? · [\d.]+ (ms|s)$/);
  await page.keyboard.press('2');
  await page.getByRole('img', { name: /^waited for you: to use deploy/ }).waitFor({ state: 'attached' });
});

test('approved, the agent goes on, and the sentence about it covers no button', async () => {
  await need().getByRole('button', { name: 'Approve' }).click();
  const toast = page.locator('.toast', { hasText: 'Approved.' });
  await toast.waitFor();
  for (const what of [page.locator('.scrubber-label'), page.getByRole('button', { name: 'Queue' }), page.getByRole('button', { name: 'Interrupt' })]) {
    assert.ok(apart(await toast.boundingBox(), await what.boundingBox()), `the toast lies over ${what}`);
  }
  await page.getByText('it is deployed').first().waitFor();
  await need().waitFor({ state: 'detached' });
  await page.getByRole('img', { name: /^waited for you: to use deploy/ }).waitFor({ state: 'attached' });
});

const apart = (a, b) => a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;

test('an idle agent says so once', async () => {
  await page.keyboard.press('1');
  await until('the end of the turn', async () => (await page.locator('.inspector-head .badge').textContent()).includes('idle'));
  const row = await page.locator('.inspector-head .row').first().textContent();
  assert.equal(row.match(/idle/g).length, 1, row);
});

test('denied with a reason, the agent is told', async () => {
  await page.getByRole('textbox', { name: 'Message to deployer' }).fill('Once more');
  await page.getByRole('button', { name: 'Queue' }).click();
  await need().getByRole('button', { name: 'Deny' }).click();
  await need().getByRole('textbox', { name: 'Why not' }).fill('It is Friday');
  await check(page, 'a denial');
  await need().getByRole('button', { name: 'Deny' }).click();
  await page.getByText('Denied.').waitFor();
  await page.getByText('it was refused').first().waitFor();
  const { actions } = (await call(house, 'GET', `/api/v1/runs/${team}`)).run;
  assert.ok(actions.some((one) => one.word === 'deny' && one.reason === 'It is Friday'), JSON.stringify(actions));
});

test('a question is answered, and the report of the completed team stands under its title', async () => {
  await page.goto(`${house.base}/r/${team}/a/lead`);
  const question = page.getByRole('article', { name: 'Question of lead' });
  await question.getByText('asks: Which colour?').waitFor();
  await question.getByRole('textbox', { name: 'Answer lead' }).fill('Blue');
  await question.getByRole('button', { name: 'Answer' }).click();
  await page.locator('.top .badge', { hasText: 'completed' }).waitFor();
  await question.waitFor({ state: 'detached' });
  await page.getByRole('log').or(page.locator('.inspector pre')).getByText('Blue').first().waitFor();
  await page.getByRole('region', { name: 'Report' }).getByText('reported: The house is painted.').waitFor();
  await page.getByRole('region', { name: 'Report' }).getByRole('link', { name: 'Read it on the board' }).waitFor();
  await page.locator('.card[data-agent="lead"][data-status="completed"]').waitFor();
  const head = await page.locator('.inspector-head .row').first().textContent();
  assert.ok(head.includes('✓ completed') && !/idle|disconnected/.test(head), head);
});

test('an agent that had no turn is the same on its card, on the board and in the palette, and its row has dashes', async () => {
  const { tasks } = await call(house, 'GET', `/api/v1/runs/${team}`);
  const { status } = tasks.find((one) => one.agent === 'greeter');
  assert.notEqual(status, 'idle');
  await page.locator(`.card[data-agent="greeter"][data-status="${status}"]`).waitFor();
  await page.keyboard.press('Control+k');
  await page.getByRole('option', { name: `greeter ${status}` }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('combobox', { name: 'Do anything' }).waitFor({ state: 'detached' });
  await page.keyboard.press('2');
  await page.getByRole('img', { name: /^waited, and had no turn/ }).waitFor({ state: 'attached' });
  await page.keyboard.press('1');
});

test('a message is edited in a fork, and shown as edited there', async () => {
  await page.goto(`${house.base}/r/${team}/t/deployer/1/1`);
  await page.getByRole('tab', { name: 'Mail' }).click();
  const letter = page.locator('.envelope-item', { hasText: 'Deploy it.' });
  await letter.getByRole('button', { name: 'Edit in a fork' }).click();
  const dialog = page.getByRole('dialog', { name: 'Fork from deployer/1/1' });
  const text = dialog.getByRole('textbox', { name: 'Message of lead to deployer' });
  await text.waitFor();
  assert.equal(await text.inputValue(), 'Deploy it.');
  await check(page, 'the dialog that edits a message');
  await dialog.getByRole('combobox', { name: 'Edit' }).selectOption('');
  await dialog.getByRole('textbox', { name: 'Prompt of deployer/1/1' }).waitFor();
  await dialog.getByRole('combobox', { name: 'Edit' }).selectOption({ index: 1 });
  await text.fill('Deploy it on Monday.');
  await dialog.getByRole('button', { name: 'Fork' }).click();
  await page.waitForURL((url) => url.pathname.startsWith('/r/20') && !url.pathname.includes(team));
  const fork = new URL(page.url()).pathname.split('/')[2];
  await need().waitFor();
  await page.keyboard.press('3');
  await page.getByRole('button', { name: /^lead to deployer, .*: \(edited.*\) Deploy it on Monday\./ }).click();
  await page.locator('.envelope-item.open').getByText(/^edited/).waitFor();
  const { mail } = await call(house, 'GET', `/api/v1/runs/${fork}/mail?agent=deployer`);
  assert.ok(mail.some((one) => one.payload.message === 'Deploy it on Monday.' && one.receipt.edited.by === 'person'), JSON.stringify(mail));
  const { prompt_text: prompt } = await call(house, 'GET', `/api/v1/runs/${fork}/turns/deployer/1/1`);
  assert.ok(prompt.includes('Deploy it on Monday.'), prompt);
  await call(house, 'POST', `/api/v1/runs/${fork}/cancel`, {});
});

test('the palette answers what agents ask', async () => {
  await page.goto(house.base);
  await page.getByRole('button', { name: 'Start a run' }).waitFor();
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Do anything' }).fill('start a team');
  await page.keyboard.press('Enter');
  await page.getByRole('textbox', { name: 'Goal of the team' }).fill('Paint the house');
  await page.keyboard.press('Enter');
  await need().waitFor();
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Do anything' }).fill('approve deployer');
  await page.keyboard.press('Enter');
  await page.getByText('Approved.').waitFor();
  await page.getByRole('article', { name: 'Question of lead' }).waitFor();
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Do anything' }).fill('answer lead');
  await page.keyboard.press('Enter');
  await page.getByRole('textbox', { name: 'Your answer to lead' }).fill('Green');
  await page.keyboard.press('Enter');
  await page.locator('.top .badge', { hasText: 'completed' }).waitFor();
  await page.goto(`${house.base}/r/${team}/a/lead`);
  await card('lead').waitFor();
});

test('the palette of a completed run offers no retry, and axe finds nothing wrong with it', async () => {
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Do anything' }).fill('retry');
  await page.getByText('Nothing has these words.').waitFor();
  await page.getByRole('combobox', { name: 'Do anything' }).fill('');
  await check(page, 'the palette');
  await page.keyboard.press('Escape');
  await page.getByRole('combobox', { name: 'Do anything' }).waitFor({ state: 'detached' });
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keys' }).waitFor();
  await check(page, 'the keys');
  await page.keyboard.press('Escape');
});

test('the graph fits again when the window becomes narrow', async () => {
  await page.goto(`${house.base}/r/${team}`);
  await card('lead').waitFor();
  await page.setViewportSize({ width: 390, height: 800 });
  await until('all cards in sight', async () => {
    const boxes = await Promise.all(['lead', 'deployer'].map((name) => card(name).boundingBox()));
    return boxes.every((box) => box && box.x >= 0 && box.x + box.width <= 390);
  });
  await page.setViewportSize({ width: 1280, height: 800 });
});

/** start fills in the dialog that starts a run. */
async function start(kind, text) {
  await page.goto(house.base);
  await page.getByRole('button', { name: 'Start a run' }).click();
  const dialog = page.getByRole('dialog', { name: 'Start a run' });
  await dialog.getByRole('radio', { name: kind, exact: true }).click();
  await dialog.getByRole('textbox').fill(text);
  await dialog.getByRole('button', { name: 'Start', exact: true }).click();
  await page.waitForURL(/\/r\/20/);
  await page.locator('.top .badge', { hasText: 'completed' }).waitFor();
}

test('a line is started from the page, and its answer is shown', async () => {
  await start('Line', '@greeter Good morning');
  await page.locator('.card').first().click();
  await page.locator('.inspector pre').getByText('Good morning').first().waitFor();
});

test('a query is started from the page, and the board has the answer of the swarm', async () => {
  await start('Swarm', 'How deep is the lake?');
  await page.locator('.card[data-agent="supervisor"]').waitFor();
  await page.keyboard.press('4');
  await page.getByLabel('Answer', { exact: true }).getByText('The lake is 40 m deep').waitFor();
  assert.equal(await page.locator('.task').count(), 3);
  await check(page, 'the board of a swarm');
});
