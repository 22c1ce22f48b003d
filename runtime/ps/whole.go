package ps

// In a group of two members each adds up all of the vector: its own contribution, and the
// other one's where that came to, in the memory that the two processes share. The sums take the
// place of the own contribution.

// giveBack ends the use of a contribution's memory. Called with mu held.
func (c *contribution) giveBack(s *Server) {
	if c.lent != nil {
		c.lent()
		return
	}
	s.sums.give(c.sums)
}

// addWhole is add for a group whose members add up all of the vector. Called with mu held.
func addWhole(s *Server, ids []int64) {
	r, lent := s.sum, make(map[*float32]func(), 1)
	var last *contribution
	for i, id := range ids {
		c := s.pending[id]
		delete(s.pending, id)
		r.taken = append(r.taken, c.Contribution)
		r.weight += c.Weight
		if c.lent != nil && len(ids) != 2 { // the tree may add others to it
			own := s.sums.take()
			copy(own, c.sums)
			c.giveBack(s)
			c = &contribution{c.Push, own, nil}
		}
		if c.lent != nil {
			lent[&c.sums[0]] = c.lent
		}
		if last = c; i < len(ids)-1 {
			s.sums.give(r.Add(c.sums, c.Leaves)...)
		}
	}
	whole := last.sums // of one contribution
	spare := r.AddLast(last.sums, last.Leaves, nil, func(_, left, right []float32) {
		switch {
		case lent[&left[0]] == nil:
			whole = left
		case lent[&right[0]] == nil:
			whole = right
		default:
			whole = s.sums.take()
		}
		r.addShare(whole, s.pieces, 0)(whole, left, right)
	})
	for _, v := range spare {
		switch at := &v[0]; {
		case lent[at] != nil:
			lent[at]()
		case at != &whole[0]:
			s.sums.give(v)
		}
	}
	s.group.whole = &vector{v: whole, held: 1}
}

// Loans returns how many contributions of other members this one has received, and how many
// of these it has added up in the memory that both processes share, without a copy.
func (m Member) Loans() (loans, all int64) { return m.loans.Load(), m.pushes.Load() }
