package plan

// Cycle finds a cycle in a graph of n nodes, given each node's successors. It returns the nodes in
// order, beginning with the lowest, or nil if there is no cycle. It takes time linear in nodes and
// edges. It keeps its own stack, so a deep graph cannot overflow the goroutine's.
func Cycle(n int, next func(i int) []int) []int {
	const (
		unseen = iota
		open   // on the path
		done
	)
	state := make([]byte, n)
	type step struct{ node, edge int }
	var path []step
	for root := range n {
		if state[root] != unseen {
			continue
		}
		state[root] = open
		path = append(path[:0], step{root, 0})
		for len(path) > 0 {
			top := &path[len(path)-1]
			succ := next(top.node)
			if top.edge == len(succ) {
				state[top.node] = done
				path = path[:len(path)-1]
				continue
			}
			to := succ[top.edge]
			top.edge++
			switch state[to] {
			case unseen:
				state[to] = open
				path = append(path, step{to, 0})
			case open:
				from := len(path) - 1
				for path[from].node != to {
					from--
				}
				var cycle []int
				for _, s := range path[from:] {
					cycle = append(cycle, s.node)
				}
				return lowestFirst(cycle)
			}
		}
	}
	return nil
}

func lowestFirst(cycle []int) []int {
	low := 0
	for i, n := range cycle {
		if n < cycle[low] {
			low = i
		}
	}
	return append(cycle[low:len(cycle):len(cycle)], cycle[:low]...)
}
