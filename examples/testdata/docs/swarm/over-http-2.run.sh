cd research
sh -ex "$1"
