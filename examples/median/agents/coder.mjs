// The coder writes one statement for each step of the plan. Then it changes what the evaluator told it to change, and nothing
// else: without the evaluator's words in its prompt it writes the same first version again.
import { writeFileSync } from "node:fs";
import { outputOf, fail } from "./prompt.mjs";

const statements = {
  "return null for an empty list": "if (numbers.length === 0) return null;",
  "sort the numbers": "const sorted = [...numbers].sort();",
  "find the middle": "const middle = Math.floor(sorted.length / 2);",
  "of an even count return the mean of the middle two": "if (sorted.length % 2 === 0) return (sorted[middle - 1] + sorted[middle]) / 2;",
  "return the middle one": "return sorted[middle];",
};

const steps = [...outputOf("planner").matchAll(/^\d+\. (.+)$/gm)].map((line) => line[1]);
if (steps.length === 0) fail("the prompt holds no plan");
const body = steps.map((step) => statements[step] ?? fail(`I do not know how to: ${step}`));
let code = `export function median(numbers) {\n  ${body.join("\n  ")}\n}\n`;

for (const [, wrong, right] of outputOf("evaluator").matchAll(/^Instead of `(.+?)` write `(.+?)`/gm)) {
  code = code.replaceAll(wrong, right);
}

writeFileSync("median.mjs", code);
process.stdout.write(code);
