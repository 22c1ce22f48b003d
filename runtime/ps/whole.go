package ps

// In a group of two members each adds up all of the vector: the other one's contribution where
// that came to, in the memory that the two processes share, and its own one in such memory too,
// where the engine has added it up there.

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

// Loans returns how many contributions this member has added up in memory that it shares with
// another one, without a copy: of other members, and of its own worker; and how many of other
// members it has received at all.
func (m Member) Loans() (loans, own, all int64) {
	return m.loans.Load(), m.own.Load(), m.pushes.Load()
}

// Merges returns how many contributions of another member this one has added up as they arrived.
func (m Member) Merges() int64 { return m.merges.Load() }
