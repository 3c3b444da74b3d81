package gossip

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// An Edge joins two nodes, numbered from 0, the lower one first.
type Edge [2]int

// A Graph says which nodes may exchange vectors.
type Graph struct {
	N     int
	Edges []Edge // each once, in ascending order
}

// maxEdges keeps graphs within memory: a complete graph of 4,000 nodes has fewer.
const maxEdges = 8_000_000

// Ring joins each node to the next and the last to the first; n ≥ 2.
func Ring(n int) Graph {
	g := Path(n)
	if n > 2 {
		g.Edges = append(g.Edges, Edge{0, n - 1})
	}
	return g.sorted()
}

// Path joins each node to the next.
func Path(n int) Graph {
	g := Graph{N: n}
	for i := 1; i < n; i++ {
		g.Edges = append(g.Edges, Edge{i - 1, i})
	}
	return g
}

// Complete joins every two nodes.
func Complete(n int) Graph {
	g := Graph{N: n}
	for i := range n {
		for j := i + 1; j < n; j++ {
			g.Edges = append(g.Edges, Edge{i, j})
		}
	}
	return g
}

// Grid places n nodes row by row on a lattice that is nearly square, whose last row may be short,
// and joins neighbors.
func Grid(n int) Graph {
	width := 1
	for width*width < n {
		width++
	}
	g := Graph{N: n}
	for i := range n {
		if i%width+1 < width && i+1 < n {
			g.Edges = append(g.Edges, Edge{i, i + 1})
		}
		if i+width < n {
			g.Edges = append(g.Edges, Edge{i, i + width})
		}
	}
	return g.sorted()
}

// Random joins every two nodes with probability p (Erdős–Rényi), by public coins of the seed.
func Random(n int, p float64, seed uint64) Graph {
	d := newDraw(seed, graphEpoch, 0)
	g := Graph{N: n}
	for i := range n {
		for j := i + 1; j < n; j++ {
			if d.float() < p {
				g.Edges = append(g.Edges, Edge{i, j})
			}
		}
	}
	return g
}

// ReadGraph reads a graph of n nodes from lines of two node numbers, counted from 0. It ignores
// empty lines and what follows #.
func ReadGraph(r io.Reader, n int) (Graph, error) {
	g := Graph{N: n}
	s := bufio.NewScanner(r)
	for line := 1; s.Scan(); line++ {
		text, _, _ := strings.Cut(s.Text(), "#")
		cells := strings.Fields(text)
		if len(cells) == 0 {
			continue
		}
		if len(cells) != 2 {
			return Graph{}, fmt.Errorf("line %d: found %d words; write two node numbers", line, len(cells))
		}
		var e Edge
		for k, c := range cells {
			v, err := strconv.Atoi(c)
			if err != nil || v < 0 || v >= n {
				return Graph{}, fmt.Errorf("line %d: found %.20q; write a node number, 0 to %d", line, c, n-1)
			}
			e[k] = v
		}
		if e[0] == e[1] {
			return Graph{}, fmt.Errorf("line %d: found node %d twice; write two different nodes", line, e[0])
		}
		if len(g.Edges) == maxEdges {
			return Graph{}, fmt.Errorf("line %d: found more than %d edges", line, maxEdges)
		}
		g.Edges = append(g.Edges, Edge{min(e[0], e[1]), max(e[0], e[1])})
	}
	if err := s.Err(); err != nil {
		return Graph{}, err
	}
	return g.sorted(), nil
}

func (g Graph) sorted() Graph {
	slices.SortFunc(g.Edges, func(a, b Edge) int { return slices.Compare(a[:], b[:]) })
	g.Edges = slices.Compact(g.Edges)
	return g
}

// Validate returns what is wrong. The graph must be connected, so that every node's vectors reach all
// others.
func (g Graph) Validate() error {
	if g.N < 2 {
		return fmt.Errorf("gossip: a graph of %d nodes; choose at least 2", g.N)
	}
	for _, e := range g.Edges {
		if e[0] < 0 || e[0] >= e[1] || e[1] >= g.N {
			return fmt.Errorf("gossip: found the edge %d–%d; write two nodes from 0 to %d, the lower one first", e[0], e[1],
				g.N-1)
		}
	}
	// Maps: N may be anything, and takes no memory.
	next := map[int][]int{}
	for _, e := range g.Edges {
		next[e[0]] = append(next[e[0]], e[1])
		next[e[1]] = append(next[e[1]], e[0])
	}
	seen, queue := map[int]bool{0: true}, []int{0}
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		for _, j := range next[i] {
			if !seen[j] {
				seen[j] = true
				queue = append(queue, j)
			}
		}
	}
	for i := range g.N {
		if !seen[i] { // at the latest after all that were seen
			return fmt.Errorf("gossip: found no path from node 0 to node %d; use a connected graph", i)
		}
	}
	return nil
}
