cp -r examples/research/. .
