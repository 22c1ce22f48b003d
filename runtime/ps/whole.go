package ps

// In a group of two members, contributions are added up where they are. The own one is in the
// worker's memory. Where the members push whole vectors, that memory and the other one's are
// shared by the two processes; else merge.go adds the other one as it arrives.

// giveBack ends the use of a contribution's memory. Called with mu held.
func (c *contribution) giveBack(s *Server) {
	switch {
	case c.busy:
		c.unwanted = true
	case c.lent != nil:
		c.lent()
	default:
		s.sums.give(c.sums)
	}
}

// loans are lent contributions that are being added up, by their memory.
type loans map[*float32]func()

// take returns the memory of a contribution for the sum: a copy where the sum adds others to it
// and it is lent. Called with mu held.
func (l *loans) take(s *Server, c *contribution, grows bool) []float32 {
	switch {
	case len(c.sums) == 0: // a group of more members than values
		c.giveBack(s)
		return nil
	case c.lent == nil:
		return c.sums
	case grows:
		own := s.sums.take()
		copy(own, c.sums)
		c.giveBack(s)
		return own
	}
	if *l == nil {
		*l = make(loans)
	}
	(*l)[&c.sums[0]] = c.lent
	return c.sums
}

// end gives vectors back that the sum has no use for. Called with mu held.
func (l loans) end(s *Server, spare [][]float32) {
	for _, v := range spare {
		if len(v) > 0 && l[&v[0]] != nil {
			l[&v[0]]()
		} else {
			s.sums.give(v)
		}
	}
}

// Loans returns how many contributions this member has added up without a copy: of another
// member, in memory that they share, and of its own worker; and how many of other members it
// has received at all.
func (m Member) Loans() (loans, own, all int64) {
	return m.loans.Load(), m.own.Load(), m.pushes.Load()
}

// Merges returns how many contributions of another member this one has added up as they arrived.
func (m Member) Merges() int64 { return m.merges.Load() }
