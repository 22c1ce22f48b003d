package ps

// In a group, contributions are added up where they are. The own one is in the worker's memory.
// Where two members push whole vectors, that memory and the other one's are shared by the two
// processes; else merge.go adds the other one as it arrives.

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

// Loans returns how many contributions this member has added up without a copy: of another
// member, in memory that they share, and of its own worker; and how many of other members it
// has received at all.
func (m Member) Loans() (loans, own, all int64) {
	return m.loans.Load(), m.own.Load(), m.pushes.Load()
}

// Merges returns how many contributions of another member this one has added up as they arrived.
func (m Member) Merges() int64 { return m.merges.Load() }
