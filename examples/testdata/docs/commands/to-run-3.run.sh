mkdir research && cd research
sh -ex "$1"
