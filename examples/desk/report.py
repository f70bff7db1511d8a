"""The worker of the task report. It starts in its desk."""
import collections
import csv
import json
import os


def set_state(state, **more):
    """Another name first, so that status.json is never half written."""
    with open("status.new", "w") as f:
        json.dump({"state": state, **more}, f)
    os.rename("status.new", "status.json")


set_state("running")
sold = collections.Counter()
with open("inbox/source/sales.csv") as f:
    for row in csv.DictReader(f):
        sold[row["shop"]] += int(row["sold"])
best, most = sold.most_common(1)[0]
with open("outbox/report.md", "w") as f:
    f.writelines(f"- {shop}: {n}\n" for shop, n in sold.most_common())
with open("outbox/summary.md", "w") as f:
    f.write(f"{best} has sold the most: {most}.\n- [x] The best shop is named\n")
set_state("completed", metrics={"shops": len(sold)})
