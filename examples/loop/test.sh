got=$(sh median.sh 9 1 5)
[ "$got" = 5 ] || { echo "the median of 9 1 5 is 5, and median.sh says $got"; exit 1; }
