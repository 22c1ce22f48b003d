package system

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
)

// SwapFacts is all that is swapped to, now and after the next boot.
type SwapFacts struct {
	Active   []string // devices and files, from /proc/swaps
	Fstab    string   // /etc/fstab
	Units    []string // .swap units that systemd starts at boot
	Services []string // services that make swap at boot, such as zramswap.service
}

// swapServices make swap without a .swap unit: zram-tools and dphys-swapfile
// (Debian), zram-config (Ubuntu), swapspace.
var swapServices = []string{"zramswap.service", "zram-config.service", "dphys-swapfile.service", "swapspace.service"}

// swapMark begins a line of /etc/fstab that stoke took out.
const swapMark = "#stoke-swap# "

func (s *SwapFacts) read(kind, text string) {
	switch kind {
	case "swaps":
		for i, line := range strings.Split(text, "\n") {
			if fields := strings.Fields(line); i > 0 && len(fields) == 5 {
				s.Active = append(s.Active, host.Unescaped(fields[0]))
			}
		}
	case "fstab":
		s.Fstab = text
	case "swapunits":
		for line := range strings.SplitSeq(text, "\n") {
			fields := strings.Fields(line)
			if len(fields) >= 2 && strings.HasSuffix(fields[0], ".swap") && boots(fields[1]) {
				s.Units = append(s.Units, fields[0])
			}
		}
		slices.Sort(s.Units)
	case "swapservices":
		units := host.ReadUnits(text)
		for _, name := range swapServices {
			if u := units[name]; u.Load == "loaded" && (boots(u.File) || u.Active == "active") {
				s.Services = append(s.Services, name)
			}
		}
	}
}

func swapLine(line string) bool {
	fields := strings.Fields(line)
	return len(fields) >= 3 && !strings.HasPrefix(fields[0], "#") && fields[2] == "swap"
}

// withoutSwap puts the mark before every swap line.
func withoutSwap(fstab string) string {
	lines := strings.SplitAfter(fstab, "\n")
	for i, line := range lines {
		if swapLine(line) {
			lines[i] = swapMark + line
		}
	}
	return strings.Join(lines, "")
}

// withSwap takes the marks away again from the lines that were there before.
func withSwap(fstab string, before func(line string) bool) string {
	lines := strings.SplitAfter(fstab, "\n")
	for i, line := range lines {
		if l, marked := strings.CutPrefix(line, swapMark); marked && before(strings.TrimSpace(l)) {
			lines[i] = l
		}
	}
	return strings.Join(lines, "")
}

func swapLines(fstab string) []string {
	lines := []string{}
	for line := range strings.SplitSeq(fstab, "\n") {
		if swapLine(line) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func (s *SwapFacts) inFstab() bool { return withoutSwap(s.Fstab) != s.Fstab }

// Display is "off" where there is none, now and at boot.
func (s *SwapFacts) Display() string {
	var boot []string
	if s.inFstab() {
		boot = append(boot, "/etc/fstab")
	}
	boot = append(append(boot, s.Units...), s.Services...)
	switch {
	case len(s.Active) > 0 && len(boot) == 0:
		return fmt.Sprintf("on until the next boot (%s)", strings.Join(s.Active, ", "))
	case len(s.Active) > 0:
		return fmt.Sprintf("on (%s)", strings.Join(s.Active, ", "))
	case len(boot) > 0:
		return fmt.Sprintf("off until the next boot (%s)", strings.Join(boot, ", "))
	}
	return "off"
}

func diffSwap(have *SwapFacts) []host.Change {
	if have.Display() == "off" {
		return nil
	}
	d := host.None
	if have.inFstab() || len(have.Units)+len(have.Services) > 0 {
		d = host.ReloadsSystemd // what a generator made of fstab is forgotten only then
	}
	return []host.Change{{Fact: "swap", Path: []string{"swap"}, Have: have.Display(), Want: "off", Disruption: d}}
}
