# A run whose second task has failed, for a reason that is gone.
swarm up --set 'providers.demo={kind: command, command: [sh, -c, "test $SWARM_TASK != code || test -e fixed"]}' || touch fixed
