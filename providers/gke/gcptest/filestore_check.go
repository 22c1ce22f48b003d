package gcptest

import (
	"fmt"
	"net/netip"
	"slices"

	file "google.golang.org/api/file/v1"

	"github.com/stokehq/stoke/runtime/pattern"
)

// tier is a class of Filestore instance: its sizes, and where and how it lives.
type tier struct {
	bands             []band // an instance stays in the one that it is made in
	regional, shrinks bool
	protocols         []string
	name              int   // the longest name of a share
	bits              []int // of a range of addresses given by its numbers
}

// band is a range of sizes in GiB.
type band struct{ least, most, step int64 }

var nfs = []string{"NFS_V3", "NFS_V4_1"}

// tiers are from https://cloud.google.com/filestore/docs/service-tiers; names and
// ranges of addresses from the descriptions of FileShareConfig.name and
// NetworkConfig.reservedIpRange in the discovery document of file v1, and for ZONAL
// from reserveIPRange of kubernetes-sigs/gcp-filestore-csi-driver.
var tiers = map[string]tier{
	"STANDARD":       {bands: []band{{1024, 65434, 1}}, protocols: nfs[:1], name: 16, bits: []int{29}},
	"BASIC_HDD":      {bands: []band{{1024, 65434, 1}}, protocols: nfs[:1], name: 16, bits: []int{29}},
	"PREMIUM":        {bands: []band{{2560, 65434, 1}}, protocols: nfs[:1], name: 16, bits: []int{29}},
	"BASIC_SSD":      {bands: []band{{2560, 65434, 1}}, protocols: nfs[:1], name: 16, bits: []int{29}},
	"HIGH_SCALE_SSD": {bands: []band{{10240, 102400, 2560}}, shrinks: true, protocols: nfs[:1], name: 63, bits: []int{24}},
	"ZONAL":          {bands: []band{{1024, 9984, 256}, {10240, 102400, 2560}}, shrinks: true, protocols: nfs, name: 63, bits: []int{24, 26}},
	"REGIONAL":       {bands: []band{{1024, 9984, 256}, {10240, 102400, 2560}}, regional: true, shrinks: true, protocols: nfs, name: 63, bits: []int{24, 26}},
	"ENTERPRISE":     {bands: []band{{1024, 10240, 256}}, regional: true, shrinks: true, protocols: nfs, name: 63, bits: []int{26}},
}

// bandOf is the band that a size is in, refused where there is none.
func (t tier) bandOf(name string, size int64) (band, error) {
	for _, b := range t.bands {
		if b.has(size) {
			return b, nil
		}
	}
	return band{}, invalid("Invalid capacity %d GiB for tier %s: must be %s.", size, name, t.bands)
}

func (b band) has(size int64) bool {
	return size >= b.least && size <= b.most && (size-b.least)%b.step == 0
}

func (b band) String() string {
	return fmt.Sprintf("between %d and %d GiB in steps of %d", b.least, b.most, b.step)
}

var shareName = pattern.New(`^[a-z][a-z0-9_]*$`)

// checkShare refuses what the descriptions of FileShareConfig and NfsExportOptions
// in the discovery document of file v1 do not allow.
func (t tier) checkShare(s *file.FileShareConfig) error {
	if !shareName.MatchString(s.Name) || len(s.Name) > t.name {
		return invalid("Invalid file share name %q: must be 1-%d lowercase letters, numbers or underscores, and start with a letter.", s.Name, t.name)
	}
	if len(s.NfsExportOptions) > 10 {
		return invalid("File share %q has %d export options, at most 10 are allowed.", s.Name, len(s.NfsExportOptions))
	}
	var ranges []netip.Prefix
	for _, o := range s.NfsExportOptions {
		if o.SquashMode != "ROOT_SQUASH" && (o.AnonUid != 0 || o.AnonGid != 0) {
			return invalid("Anon_uid and anon_gid may only be set with squash_mode of ROOT_SQUASH.")
		}
		for _, text := range o.IpRanges {
			p, err := prefixOf(text)
			if err != nil || !p.Addr().Is4() {
				return invalid("Invalid IP range %q of an export option.", text)
			}
			if slices.ContainsFunc(ranges, p.Overlaps) {
				return invalid("IP range %q of an export option overlaps another one.", text)
			}
			ranges = append(ranges, p)
		}
	}
	if len(ranges) > 64 {
		return invalid("File share %q has %d IP ranges in its export options, at most 64 are allowed.", s.Name, len(ranges))
	}
	return nil
}

// prefixOf reads a range, or an address as the range of it alone.
func prefixOf(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return a.Prefix(a.BitLen())
	}
	p, err := netip.ParsePrefix(text)
	if err == nil && p != p.Masked() {
		err = fmt.Errorf("%s has bits set behind its mask", text)
	}
	return p, err
}

// fillRange gives an instance the range of addresses that it is in, and its
// address. A range of numbers is one of nobody else's in the network.
func (c *Cloud) fillRange(t tier, n *file.NetworkConfig) error {
	if n.ConnectMode != "DIRECT_PEERING" {
		if _, err := netip.ParsePrefix(n.ReservedIpRange); err == nil {
			return invalid("Reserved_ip_range %q: with connect mode %s it is the name of an allocated range.", n.ReservedIpRange, n.ConnectMode)
		}
		standard(&n.ReservedIpRange, "allocated")
		n.IpAddresses = []string{fmt.Sprintf("10.99.%d.2", len(c.files)%250)}
		return nil
	}
	standard(&n.ReservedIpRange, fmt.Sprintf("10.%d.%d.0/%d", 100+len(c.files)/250, len(c.files)%250, t.bits[0]))
	p, err := netip.ParsePrefix(n.ReservedIpRange)
	if err != nil || p != p.Masked() || !p.Addr().IsPrivate() || !slices.Contains(t.bits, p.Bits()) {
		return invalid("Invalid reserved_ip_range %q: must be an internal range with one of %v bits.", n.ReservedIpRange, t.bits)
	}
	for _, other := range sortedValues(c.files) {
		for _, there := range other.Networks {
			taken, err := netip.ParsePrefix(there.ReservedIpRange)
			if err == nil && last(there.Network) == last(n.Network) && taken.Overlaps(p) {
				return invalid("Reserved_ip_range %q overlaps the one of instance %s.", n.ReservedIpRange, other.Name)
			}
		}
	}
	n.IpAddresses = []string{p.Addr().Next().Next().String()}
	return nil
}
