// The evaluator looks for mistakes that are often made in JavaScript, and remembers what the tests said last time.
import { outputOf, fail } from "./prompt.mjs";

const mistakes = [
  { wrong: ".sort()", right: ".sort((a, b) => a - b)", because: "without a comparison numbers are sorted as text: 10 before 9" },
  { wrong: " == ", right: " === ", because: 'the shorter one takes "" for 0' },
  { wrong: "isNaN(", right: "Number.isNaN(", because: "the shorter one turns its argument into a number first" },
];

const code = outputOf("coder");
if (!code) fail("the prompt holds no code");

const failures = outputOf("tester").match(/^FAIL .+$/gm) ?? [];
for (const failure of failures) console.log(`The last test run said: ${failure}`);

const found = mistakes.filter((m) => code.includes(m.wrong));
for (const m of found) console.log(`Instead of \`${m.wrong}\` write \`${m.right}\`, because ${m.because}.`);
if (found.length === 0) console.log("I find nothing to change.");
