// How the tests' results are printed: a line for each, short enough to be read in a prompt.
export default async function* report(events) {
  let passed = 0;
  let failed = 0;
  for await (const { type, data } of events) {
    if (data?.nesting > 0 || data?.details?.type === "suite") continue;
    if (type === "test:pass") {
      passed++;
      yield `ok   ${data.name}\n`;
    } else if (type === "test:fail") {
      failed++;
      const { cause } = data.details.error;
      yield `FAIL ${data.name}: ${String(cause?.message ?? data.details.error.message).split("\n")[0]}\n`;
    }
  }
  yield `${passed + failed} tests, ${failed} failed\n`;
}
