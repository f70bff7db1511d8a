# The worker of the task collect. It starts in its desk.
set -e
echo '{"state": "running", "progress": {"current_step": "collecting", "steps_completed": 0, "total_steps": 1}}' > status.json
(echo shop,sold; cat inbox/shops/*.csv) > outbox/sales.csv
cat > outbox/summary.md <<END
I collected the sales of $(ls inbox/shops | wc -l | tr -d ' ') shops.
- [x] Each shop is in it
END
echo '{"state": "completed"}' > status.json
