# An agent that attacks the page: a line of 5 MB, markup, scripts and control characters.
cat > /dev/null
head -c 5000000 /dev/zero | tr '\000' 'x'
echo
if [ "$SWARM_TURN_ID" = hostile/1/1 ]; then
	echo '<script>window.hacked=1</script> in an artifact' > '<b>hostile.html'
	swarm send @lead '<img src=x onerror="window.hacked=1"><svg onload="window.hacked=1">' --artifact '<b>hostile.html'
	swarm publish markup '<script>window.hacked=1</script>'
fi
printf '\033[31mred\033[0m \033]0;title\007 \342\200\256abc\n'
echo '<script>window.hacked=1</script><img src=x onerror="window.hacked=1"><a href="javascript:window.hacked=1">click</a>'
