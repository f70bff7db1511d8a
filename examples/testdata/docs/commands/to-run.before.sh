git init -q .
printf '@planner Plan it\n@coder Write $planner\n' > lines.txt
