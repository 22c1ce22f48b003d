package gpu

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/stokehq/stoke/runtime/pattern"
)

// node is an element of nvidia-smi's XML.
type node struct {
	XMLName  xml.Name
	Text     string `xml:",chardata"`
	ID       string `xml:"id,attr"`
	Children []node `xml:",any"`
}

// lostDevice is a line about a GPU that nvidia-smi cannot list.
var lostDevice = pattern.New(`Unable to determine the device handle for (?:GPU ?)?([0-9A-Fa-f:.]+): ([^\n.]*)`)

// ParseSMI returns the readings in the output of `nvidia-smi -q -x`, with the lines
// on its standard error about GPUs that it cannot list. The output has neither XID
// events nor processes of containers.
func ParseSMI(text string) (Snapshot, error) {
	s := Snapshot{GPUs: []Reading{}}
	failed := lostDevice.FindAllStringSubmatch(text, -1)
	if i := strings.Index(text, "<nvidia_smi_log"); i >= 0 {
		var log node
		if err := xml.NewDecoder(strings.NewReader(text[i:])).Decode(&log); err != nil && !errors.Is(err, io.EOF) {
			return s, fmt.Errorf("read the XML of nvidia-smi: %w", err)
		}
		s.Driver, s.CUDA = log.text("driver_version"), log.text("cuda_version")
		for _, n := range log.find("gpu") {
			s.GPUs = append(s.GPUs, readingOf(len(s.GPUs), n))
		}
	} else if len(failed) == 0 {
		return s, errors.New("read the XML of nvidia-smi: the output has none")
	}
	for _, f := range failed {
		r := Reading{Index: len(s.GPUs), Fault: FaultRefused, Detail: first(f[1]+": "+f[2], maxText)}
		switch why := strings.ToLower(f[2]); {
		case strings.Contains(why, "lost"):
			r.Fault = FaultLost
		case strings.Contains(why, "reset"):
			r.Fault = FaultReset
		}
		s.GPUs = append(s.GPUs, r)
	}
	return s, s.Validate()
}

func first(text string, n int) string { return text[:min(len(text), n)] }

// readingOf returns the reading of one GPU.
func readingOf(index int, n *node) Reading {
	r := Reading{Index: index, UUID: n.text("uuid"), Name: n.text("product_name"), Values: make(map[string]float64)}
	if strings.Contains(strings.ToLower(r.UUID+r.Name), "gpu is lost") {
		return Reading{Index: index, Fault: FaultLost, Detail: first(n.ID, maxText)}
	}
	if number, err := strconv.Atoi(n.text("minor_number")); err == nil && number >= 0 {
		r.Index = number // NVML and the device files both follow the bus addresses
	}
	for _, row := range Table() {
		for _, place := range strings.Split(row.SMI, "|") {
			if v, ok := n.sum(place); ok {
				r.Values[row.Key] = v
				break
			}
		}
	}
	for _, reason := range Reasons() {
		for _, kind := range []string{"event", "throttle"} {
			if n.text("clocks_"+kind+"_reasons/clocks_"+kind+"_reason_"+reason.SMI) == "Active" {
				r.Throttle = append(r.Throttle, reason.Name)
			}
		}
	}
	return r
}

// find returns the elements at a path, whose last name may be a pattern.
func (n *node) find(place string) (all []*node) {
	name, rest, more := strings.Cut(place, "/")
	for i := range n.Children {
		c := &n.Children[i]
		if is, err := path.Match(name, c.XMLName.Local); err != nil || !is {
			continue
		}
		if more {
			all = append(all, c.find(rest)...)
		} else {
			all = append(all, c)
		}
	}
	return all
}

func (n *node) text(place string) string {
	for _, c := range n.find(place) {
		return strings.TrimSpace(c.Text)
	}
	return ""
}

// sum returns the sum of the numbers at a path; false: the GPU has none.
func (n *node) sum(place string) (total float64, ok bool) {
	for _, c := range n.find(place) {
		if v, is := number(strings.TrimSpace(c.Text)); is {
			total, ok = total+v, true
		}
	}
	return total, ok
}

// number reads a number with its unit, such as "81559 MiB", or Yes and No.
func number(text string) (float64, bool) {
	switch text {
	case "Yes":
		return 1, true
	case "No":
		return 0, true
	}
	digits, unit, _ := strings.Cut(text, " ")
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil || v < 0 {
		return 0, false // N/A, or a message
	}
	if unit == "MiB" {
		v *= 1 << 20
	}
	return v, true
}
