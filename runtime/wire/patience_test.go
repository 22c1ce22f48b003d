package wire

import "testing"

// Members of one machine have more patience with each other where they are many for its cores;
// members of other machines do not.
func TestPatienceOfMembers(t *testing.T) {
	group := func(beside, elsewhere int) *Group {
		g := new(Group)
		for range beside {
			g.Members = append(g.Members, "10.0.0.1:7000")
		}
		for range elsewhere {
			g.Members = append(g.Members, "10.0.0.2:7000")
		}
		return g
	}
	for _, c := range []struct{ beside, elsewhere, member, cores, times int }{
		{2, 0, 1, 2, 1}, {4, 0, 1, 2, 1}, {32, 0, 1, 2, 8}, {32, 0, 1, 0, 16}, {32, 1, 32, 2, 1}, {4, 32, 1, 2, 1},
	} {
		if d := group(c.beside, c.elsewhere).Patience(c.member, c.cores); int(d/MemberPatience) != c.times {
			t.Errorf("%+v: %v", c, d)
		}
	}
}
