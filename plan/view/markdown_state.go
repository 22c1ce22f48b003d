package view

import (
	"fmt"
	"io"
	"strings"

	"github.com/stokehq/stoke/plan/state"
)

// StateMarkdown writes a state as Markdown: every object in a fold, and the
// outputs. Sensitive values are not in it, and it fits into a comment.
func StateMarkdown(out io.Writer, s *state.State, schemas Schemas) error {
	m, instances := newSheet(), s.Instances()
	m.print("## State: ", counted(len(instances), "object"), ", ", counted(len(s.Outputs()), "output"), "\n\n")
	m.items("Objects", m.left-outputsShare, len(instances), func(i int) string {
		a, remark := instances[i], ""
		if o := s.Current(a); o != nil && o.Tainted {
			remark = " is tainted"
		}
		if n := len(s.Deposed(a)); n > 0 {
			remark += ", with " + counted(n, "deposed object")
		}
		return fold(htmlCode(a.String())+remark, fence("hcl", cutLines(textOf(func(p *Printer) { p.Instance(s, a, schemas) }), maxFold)))
	})
	if len(s.Outputs()) > 0 {
		text := textOf(func(p *Printer) { p.Outputs(s.Outputs()) })
		cutText := cutLines(text, outputsShare-1000)
		m.cut = m.cut || len(cutText) < len(text)
		m.print(fold("Outputs", fence("hcl", cutText)))
	}
	if err := m.finish(out, "stoke show"); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	return nil
}

// textOf is what something prints, without colours.
func textOf(printed func(p *Printer)) string {
	var b strings.Builder
	printed(&Printer{Out: &b})
	return b.String()
}
