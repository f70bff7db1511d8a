// The tester runs the tests that its prompt names, as Node runs any tests. It fails when they do.
import { spawnSync } from "node:child_process";
import { prompt, fail } from "./prompt.mjs";

const file = prompt.match(/^Run: (.+)$/m)?.[1];
if (!file) fail("the prompt names no tests");

const run = spawnSync(process.execPath, ["--test", "--test-reporter=./agents/reporter.mjs", file], { stdio: ["ignore", "inherit", "inherit"] });
process.exit(run.status ?? 1);
