cd asks
sh -ex "$1"
