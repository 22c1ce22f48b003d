package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/stokehq/stoke/runtime/gpu"
	"github.com/stokehq/stoke/runtime/gpu/probe"
)

// print prints a value as one line of JSON.
func (p *program) print(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return p.write(string(text) + "\n")
}

func (p *program) write(text string) error {
	_, err := io.WriteString(p.out, text)
	return err
}

func (p *program) printVerdict(h gpu.Health, s gpu.Snapshot, asJSON bool) error {
	if asJSON {
		if s.GPUs == nil {
			s.GPUs = []gpu.Reading{}
		}
		return p.print(probe.Report{Health: h, Snapshot: s})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d GPUs\n", h.Verdict, len(s.GPUs))
	for _, f := range h.Findings {
		fmt.Fprintf(&b, "  %s  %s [%s]\n", f.Severity, f, f.Rule)
	}
	for i := range s.GPUs {
		if m := s.GPUs[i].Measured; m != nil && m.Failed == "" {
			fmt.Fprintf(&b, "  GPU %d: %s\n", s.GPUs[i].Index, m)
		}
	}
	return p.write(b.String())
}

// listText is an inventory for people.
func listText(of gpu.Inventory) string {
	var b strings.Builder
	switch {
	case of.Absent != "":
		return "No NVIDIA GPUs: " + of.Absent + "\n"
	case of.Fault != "":
		h := gpu.Judge(gpu.Snapshot{Fault: of.Fault, Detail: of.Detail}, gpu.Expectation{})
		return "The GPUs cannot be listed: " + h.Reasons() + "\n"
	}
	fmt.Fprintf(&b, "Driver %s, CUDA %s\n\n", of.Driver, of.CUDA)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "GPU\tNAME\tMEMORY\tCAPABILITY\tMIG\tNVLINKS\tPCI\tUUID")
	for _, d := range of.GPUs {
		if d.Fault != "" {
			fmt.Fprintf(w, "%d\tdoes not answer: %s\t\t\t\t\t\t\n", d.Index, d.Fault)
			continue
		}
		mig := "-"
		if d.MIG {
			mig = fmt.Sprintf("%d instances", len(d.Instances))
		}
		fmt.Fprintf(w, "%d\t%s\t%d MiB\t%s\t%s\t%d\t%s\t%s\n", d.Index, d.Name, d.Memory>>20, d.Capability, mig, d.NVLinks, d.PCI, d.UUID)
		for _, i := range d.Instances {
			fmt.Fprintf(w, "\t  %s\t%d MiB\t\t\t\t\t%s\n", i.Name, i.Memory>>20, i.UUID)
		}
	}
	w.Flush() //nolint:errcheck // a strings.Builder does not fail
	return b.String()
}
