package engine

// Tree adds up the sums of leaves in their order: two neighbours are added, then
// two such pairs, and so on; the remaining parts are added in the end, from the
// last to the first. The result depends only on the number of leaves, also where
// blocks of leaves were added up elsewhere before: a block begins at a multiple
// of its length, rounded up to a power of two. The tree holds at most log₂ of
// the leaves parts at a time. The zero Tree is empty.
type Tree struct {
	// Merge sets into to left + right; the caller sets it before Add. into is left, or Into.
	Merge func(into, left, right []float32)
	// Into is the caller's memory for the sum of all leaves; nil: the sum is in the vector of
	// the first leaves.
	Into  []float32
	parts []branch
	there bool // the first part is in Into
}

// branch is the sum of so many leaves that follow one another.
type branch struct {
	sums   []float32
	leaves int
}

// Add takes the sums of the next leaves, which then belong to the tree, and
// returns the vectors that the tree has no use for.
func (t *Tree) Add(sums []float32, leaves int) (spare [][]float32) {
	t.parts = append(t.parts, branch{sums, leaves})
	return t.mergeEqual()
}

// Neighbour returns the vector that Add would merge the sums of the next leaves into; nil:
// it would keep them. A caller that adds them there itself calls Grow, in place of Add.
func (t *Tree) Neighbour(leaves int) []float32 {
	if n := len(t.parts); n > 0 && t.parts[n-1].leaves == leaves {
		return t.parts[n-1].sums
	}
	return nil
}

// Grow counts the leaves that the caller has added to Neighbour, and returns the vectors
// that the tree has no use for.
func (t *Tree) Grow(leaves int) (spare [][]float32) {
	t.parts[len(t.parts)-1].leaves += leaves
	return t.mergeEqual()
}

// mergeEqual merges the last parts as long as two have as many leaves.
func (t *Tree) mergeEqual() (spare [][]float32) {
	for n := len(t.parts); n > 1 && t.parts[n-2].leaves == t.parts[n-1].leaves; n-- {
		spare = append(spare, t.merge()...)
	}
	return spare
}

// merge adds the last part to the one before it.
func (t *Tree) merge() (spare [][]float32) {
	n := len(t.parts)
	left, right := &t.parts[n-2], t.parts[n-1]
	into := left.sums
	if spare = [][]float32{right.sums}; n == 2 && t.Into != nil {
		if into = t.Into; !t.there {
			spare = append(spare, left.sums)
		}
		t.there = true
	}
	t.Merge(into, left.sums, right.sums)
	t.parts[n-2] = branch{into, left.leaves + right.leaves}
	t.parts = t.parts[:n-1]
	return spare
}

// Finish leaves one part, in Into.
func (t *Tree) Finish() (spare [][]float32) {
	for len(t.parts) > 1 {
		spare = append(spare, t.merge()...)
	}
	if t.Into != nil && !t.there && len(t.parts) == 1 { // nothing was merged
		copy(t.Into, t.parts[0].sums)
		spare = append(spare, t.parts[0].sums)
		t.parts[0].sums, t.there = t.Into, true
	}
	return spare
}

// Sums returns the sum once the tree is finished; nil: of nothing.
func (t *Tree) Sums() []float32 {
	if len(t.parts) == 0 {
		return nil
	}
	return t.parts[0].sums
}

// Parts returns how many vectors the tree holds.
func (t *Tree) Parts() int { return len(t.parts) }

// Clear empties the tree and returns its vectors, without Into.
func (t *Tree) Clear() (spare [][]float32) {
	for i, p := range t.parts {
		if i > 0 || !t.there {
			spare = append(spare, p.sums)
		}
	}
	t.parts, t.there = t.parts[:0], false
	return spare
}
