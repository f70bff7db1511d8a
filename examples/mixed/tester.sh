# The tester: a script is an agent like any other. It reads its prompt and need not understand it.
cat >/dev/null
bad=0
while read -r number want; do
	got=$(sh roman.sh "$number")
	if [ "$got" = "$want" ]; then
		echo "ok $number is $want"
	else
		echo "not ok: $number is $want, and the program says $got"
		bad=1
	fi
done <<CASES
1 I
4 IV
9 IX
40 XL
90 XC
1994 MCMXCIV
3999 MMMCMXCIX
CASES
exit $bad
