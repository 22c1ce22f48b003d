package metal

import (
	"context"
	"strings"
	"sync"

	"github.com/stokehq/stoke/providers/metal/facts"
	"github.com/stokehq/stoke/providers/metal/host"
)

// factsCache holds the facts that were gathered by this process, and from where, for
// Review: it has planned values only, and no way to a machine.
type factsCache struct {
	mu sync.Mutex
	by map[string]snapshot
	// noNft are machines that lack the program nft.
	noNft map[string]bool
	// lacks is what machines of control planes do not have yet.
	lacks map[string][]unfitness
}

type snapshot struct {
	facts   facts.Facts
	m       host.Machine
	noProxy []string // what the machine reaches without the provider's proxy; nil: there is none
}

// machineKey names a machine: the host key distinguishes one address behind two
// bastions.
func machineKey(address, hostKey string) string {
	return strings.ToLower(address) + " " + strings.TrimSpace(hostKey)
}

func (s *factsCache) note(address, hostKey string, is snapshot) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = map[string]snapshot{}
	}
	s.by[machineKey(address, hostKey)] = is
}

// lacksNft notes a machine without nft; false where no review will ask for it.
func (s *factsCache) lacksNft(address, hostKey string) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.noNft == nil {
		s.noNft = map[string]bool{}
	}
	s.noNft[machineKey(address, hostKey)] = true
	return true
}

// unready notes what a control plane's machine lacks that a metal_host may fix; false
// where no review will ask for it.
func (s *factsCache) unready(m host.Machine, soon []unfitness) bool {
	r, far := m.(*host.Remote)
	if s == nil || !far {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lacks == nil {
		s.lacks = map[string][]unfitness{}
	}
	s.lacks[machineKey(r.Target.Address, r.Target.HostKey)] = soon
	return true
}

func (s *factsCache) snapshotOf(address, hostKey string) (snapshot, bool) {
	if s == nil {
		return snapshot{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.by[machineKey(address, hostKey)]
	return found, ok
}

func (s *settings) gather(ctx context.Context, m host.Machine) (facts.Facts, error) {
	f, err := facts.Gather(ctx, m)
	if r, far := m.(*host.Remote); far && err == nil {
		s.seen.note(r.Target.Address, r.Target.HostKey, snapshot{facts: f, m: m, noProxy: s.noProxy()})
	}
	return f, err
}
