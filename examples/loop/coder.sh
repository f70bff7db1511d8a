# An agent that reads its prompt. Its first version takes the middle argument as it comes; the reason of
# the failure, which is in the next prompt, makes it sort them.
if grep -q 'Why attempt .* failed'; then
	echo 'printf "%s\n" "$@" | sort -n | sed -n "$((($# + 1) / 2))p"' > median.sh
	echo "I sort the numbers now."
else
	echo 'shift $(($# / 2)); echo "$1"' > median.sh
	echo "I wrote median.sh."
fi
