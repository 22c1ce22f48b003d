package gke

import (
	"context"
	"strings"
	"sync"

	"cloud.google.com/go/container/apiv1/containerpb"
	compute "google.golang.org/api/compute/v1"

	"github.com/stokehq/stoke/providers/gke/cloud"
)

// sizes are how many nodes pools are to have. The container API does not say: it
// is the sum over their groups of machines, which one list for each zone tells.
type sizes struct {
	mu    sync.Mutex
	zones map[string]*zoneSizes
}

type zoneSizes struct {
	mu     sync.Mutex
	groups map[string]int64 // by the group's name; nil where they have to be read
}

// sizeOf is the number of nodes in each zone of a pool. Where the zones differ it is a number that is not the
// declared one, so that a plan has the difference.
func (s *sizes) sizeOf(ctx context.Context, c *cloud.Cloud, p *containerpb.NodePool, declared int64) (int64, error) {
	size := int64(0)
	for i, url := range p.GetInstanceGroupUrls() {
		zone := zoneOf(url)
		n, err := s.zone(c.Project+"/"+zone).group(ctx, c, zone, last(url))
		if err != nil {
			return 0, err
		}
		if i == 0 || n != declared {
			size = n
		}
	}
	return size, nil
}

func (s *sizes) zone(name string) *zoneSizes {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.zones == nil {
		s.zones = map[string]*zoneSizes{}
	}
	if s.zones[name] == nil {
		s.zones[name] = &zoneSizes{}
	}
	return s.zones[name]
}

// forget makes the next look ask again, after something has changed.
func (s *sizes) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.zones = nil
}

func (z *zoneSizes) group(ctx context.Context, c *cloud.Cloud, zone, name string) (int64, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.groups == nil {
		groups, err := cloud.Read(ctx, c, func(ctx context.Context) (map[string]int64, error) {
			all := map[string]int64{}
			err := c.Compute.InstanceGroupManagers.List(c.Project, zone).Pages(ctx, func(page *compute.InstanceGroupManagerList) error {
				for _, g := range page.Items {
					all[g.Name] = g.TargetSize
				}
				return nil
			})
			return all, err
		})
		if err != nil {
			return 0, err
		}
		z.groups = groups
	}
	return z.groups[name], nil
}

// zoneOf is the zone in a link to something that lies in one.
func zoneOf(link string) string {
	suffix := cloud.Suffix(link)
	for i, r := range suffix {
		if r == '/' {
			return suffix[:i]
		}
	}
	return ""
}

// regionOf is the region of a zone, or itself.
func regionOf(location string) string {
	if isZone(location) {
		return location[:strings.LastIndexByte(location, '-')]
	}
	return location
}

// isZone tells a zone, us-central1-a, from a region, us-central1.
func isZone(location string) bool { return strings.Count(location, "-") == 2 }
